// What the pages of a seeded `mailgate dev` are made of, and where it is: the boxes of landmarks, headings, tables and
// controls. Unlike pixels they tell what is broken, and depend neither on how a machine draws letters nor on the time.
import { SCHEMES, UNSTEADY, VIEWPORTS, open, pages, tab } from './pages.mjs';

/** The kinds, by their selectors. */
const KINDS = [
  'body', '.side', '.trail', 'main', 'h1', 'h2', 'section', '.columns', '.card', '.note', '.said', '.empty', '.tiles', '.tile',
  '.attention', '.plot', '.tabs', '.search', '.chips', 'table', '.rows thead th', '.badge', 'tbody tr:first-child',
  '.timeline', '.foot', 'dl', 'form', 'label', 'input', 'select', 'textarea', 'button', '.button', '.code', 'pre', 'details', '.panes',
  '.preview', 'iframe',
];

/** Of each kind, so many are enough. */
const MOST = 6;

/** In the page: each kind's number, and the first boxes as [x, y, width, height]. */
function measure([kinds, most]) {
  const round = (number) => Math.round(number / 4) * 4;
  const found = {};
  for (const kind of kinds) {
    const all = [...document.querySelectorAll(kind)].filter((it) => {
      const { width, height } = it.getBoundingClientRect();
      return it.checkVisibility({ visibilityProperty: true }) && width > 1 && height > 1;
    });
    if (all.length === 0) continue;
    const boxes = all.slice(0, most).map((it) => {
      const { x, y, width, height } = it.getBoundingClientRect();
      return [x + scrollX, y + scrollY, width, height].map(round);
    });
    found[kind] = [all.length, ...boxes];
  }
  const root = document.documentElement;
  return { wide: root.scrollWidth > root.clientWidth, found };
}

const colours = () => {
  const { backgroundColor, color } = getComputedStyle(document.body);
  return `${color} on ${backgroundColor}`;
};

/** The boxes of all pages, the requests to other hosts, and the pages that scroll sideways. */
export async function boxes(chrome, dev) {
  const [measured, wide] = [{}, []];
  const { page, foreign, close } = await tab(chrome, dev, VIEWPORTS[0], 'light');
  for (const [name, url] of Object.entries(await pages(dev, page))) {
    if (UNSTEADY.has(name)) continue;
    await page.setViewportSize(VIEWPORTS[0]);
    await open(page, name, url);
    const colour = {};
    for (const colorScheme of [...SCHEMES].reverse()) {
      await page.emulateMedia({ colorScheme });
      colour[colorScheme] = await page.evaluate(colours);
    }
    for (const viewport of VIEWPORTS) {
      await page.setViewportSize(viewport);
      const seen = await page.evaluate(measure, [KINDS, MOST]);
      const at = `${name}-${viewport.width}`;
      if (seen.wide) wide.push(at);
      measured[at] = { ...colour, ...seen.found };
    }
  }
  await close();
  return { pages: measured, foreign, wide };
}
