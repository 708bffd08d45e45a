// Takes the pictures of docs/images from a seeded `mailgate dev`:
//
//   node take.mjs DEV_JSON DOCS_IMAGES
//
// Each page is in DOCS_IMAGES/portal at two sizes, light and dark, with 16 colours; those that documents show are in
// DOCS_IMAGES. A picture that differs from the one there in no more than its words, such as times and ids, isn't
// written anew. DOCS_IMAGES/portal/boxes.json has what compare.mjs compares.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';

import { boxes } from './boxes.mjs';
import { SCHEMES, VIEWPORTS, browser, open, pages, tab } from './pages.mjs';
import { decode, encode } from './png.mjs';

/** A picture's blocks, by which it is compared with the one before; in pixels. */
const BLOCK = 32;
/** By how much the mean brightness of a block differs, of 255. */
const DIFFERENCE = 16;
/** The share of such blocks from which on a picture is another one. */
const SHARE = 0.03;

/** What documents show: the page, and its size. */
const SHOWN = [
  ['portal-overview', 'overview', { width: 1280, height: 900 }],
  ['portal-message', 'message-waiting', { width: 1280, height: 900 }],
  ['portal-billing', 'billing', { width: 1280, height: 700 }],
  ['connect-page', 'connect', { width: 640, height: 900 }],
  ['sandbox', 'sandbox', { width: 1000, height: 600 }],
  ['api-reference', 'docs', { width: 1280, height: 900 }],
];

const [announcement, folder] = process.argv.slice(2);
const dev = JSON.parse(readFileSync(announcement, 'utf8'));
mkdirSync(`${folder}/portal`, { recursive: true });
const chrome = await browser();
let written = 0;

// First: each sign-in is another row of the sessions.
const measured = await boxes(chrome, dev);
const lines = Object.entries(measured.pages).map(([name, page]) => `${JSON.stringify(name)}: ${JSON.stringify(page)}`);
writeFileSync(`${folder}/portal/boxes.json`, `{\n${lines.join(',\n')}\n}\n`);

for (const viewport of VIEWPORTS) {
  for (const scheme of SCHEMES) {
    const { page, close } = await tab(chrome, dev, viewport, scheme);
    for (const [name, url] of Object.entries(await pages(dev, page))) {
      await open(page, name, url);
      keep(`${folder}/portal/${name}-${viewport.width}-${scheme}.png`, await page.screenshot(), 16);
    }
    await close();
  }
}
for (const [file, name, viewport] of SHOWN) {
  const { page, close } = await tab(chrome, dev, viewport, 'light');
  await open(page, name, (await pages(dev, page))[name]);
  keep(`${folder}/${file}.png`, await page.screenshot(), 256);
  await close();
}
await chrome.close();
console.log(`${written} pictures are new`);

function keep(path, screenshot, colours) {
  const picture = decode(screenshot);
  if (existsSync(path) && isSame(decode(readFileSync(path)), picture)) return;
  writeFileSync(path, encode(picture, colours));
  written += 1;
}

function isSame(before, now) {
  if (before.width !== now.width || before.height !== now.height) return false;
  const [one, other] = [brightness(before), brightness(now)];
  const differing = one.filter((value, at) => Math.abs(value - other[at]) > DIFFERENCE).length;
  return differing <= one.length * SHARE;
}

/** The mean brightness of each block. */
function brightness({ width, height, pixels }) {
  const columns = Math.ceil(width / BLOCK);
  const sums = Array(columns * Math.ceil(height / BLOCK)).fill(0);
  const counts = [...sums];
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const block = Math.floor(y / BLOCK) * columns + Math.floor(x / BLOCK);
      const at = (y * width + x) * 3;
      sums[block] += (pixels[at] + pixels[at + 1] + pixels[at + 2]) / 3;
      counts[block] += 1;
    }
  }
  return sums.map((sum, at) => sum / counts[at]);
}
