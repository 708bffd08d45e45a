// Drives a headless Chromium through a list of steps, with npm `playwright-core`.
//
//   node browser.mjs <PLAN
//
// The plan is a JSON object:
//   steps            the list of steps (below)
//   viewport         {"width": …, "height": …} in CSS pixels
//   javascript       false: pages run no scripts (default: true)
//   allowRefused     true: what the browser refuses doesn't fail the run (default: false)
//   userDataFolder   an empty folder for the browser's profile
//   stepSeconds      how long one step may take
//   limitSeconds     how long all steps together may take
//
// A step is an object with one member. A selector is one of Playwright's: CSS, `text=Send`,
// `role=button[name="Send"]`; it must fit one element.
//   {"goto": url}               opens a page
//   {"back": null}              goes back to the page before
//   {"click": selector}         clicks, and waits for the page that this leads to
//   {"fill": [selector, text]}  replaces what a field holds
//   {"press": [key, ...]}       presses keys, one after the other, on whatever has the focus
//   {"tabTo": selector}         presses Tab until the focus is on an element of this CSS selector
//   {"type": text}              types into whatever has the focus
//   {"fits": null}              fails where the page scrolls sideways
//   {"read": selector}          the field's value or the element's visible text, as `text`; `frame=h1` is the h1 in the page's iframe
//   {"measure": expression}     what an expression of JavaScript gives, as `text`
//   {"expectUrl": regex}        waits until the page's URL fits
//   {"expectText": text}        waits until the page shows the text, white space folded
//   {"screenshot": path}        a picture of the whole page
//   {"post": [url, headers, body]}  a POST of JSON by somebody else, who must be answered 2xx
//   {"colorScheme": scheme}     what the user prefers from now on: light or dark
//   {"accessible": null}        fails where axe finds that the page breaks a rule of WCAG 2.2 (A, AA) or a best practice
//
// For each step done it prints one line of JSON: `url`, `title`, `status` (HTTP status of the last
// navigation, null when there was none or it got no answer), `loads` (pages loaded so far), `text`, and what the browser said since
// the step before: `consoleErrors` and `refused` (what a Content Security Policy or the like forbade).
// When a step fails, the reason goes to stderr and the exit status is 1.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(process.execPath);
const { chromium } = require('playwright-core');

const CHROMIUM = '/usr/bin/chromium';
/** How often a page is looked at; in milliseconds. */
const POLL_TIME = 50;

const ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-proxy-server',
  // Nothing leaves this machine: every other name or address is none.
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
];

/** Before a selector that is meant within the page's frame. */
const FRAME = 'frame=';

const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const WCAG = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

// Chromium's own words; older versions began them with "Refused to".
const REFUSED = /Content Security Policy|^Refused to /;

const plan = JSON.parse(readFileSync(0, 'utf8'));
const { steps, viewport, javascript = true, allowRefused = false } = plan;
/** Longest that one step may take; in milliseconds. */
const STEP_TIME = plan.stepSeconds * 1000;
const deadline = Date.now() + plan.limitSeconds * 1000;

let consoleErrors = [];
let refused = [];
let status = null;
let loads = 0;

/** Notes what the browser says and what navigations are answered. */
function listen(context, page) {
  const note = (text) => (REFUSED.test(text) ? refused : consoleErrors).push(text);
  context.on('console', (message) => {
    if (message.type() === 'error') note(`${message.text()} (${message.location().url})`);
  });
  context.on('weberror', (error) => note(String(error.error())));
  page.on('load', () => {
    loads += 1;
  });
  const navigates = (request) => request.isNavigationRequest() && request.frame() === page.mainFrame();
  page.on('response', (response) => {
    if (navigates(response.request())) status = response.status();
  });
  page.on('requestfailed', (request) => {
    if (navigates(request)) status = null;
  });
}

async function until(what, holds) {
  const end = Math.min(Date.now() + STEP_TIME, deadline);
  let seen;
  do {
    // The page may be left while it is asked.
    seen = await holds().catch((error) => ({ shown: error.message }));
    if (seen.holds) return;
    await new Promise((resolve) => setTimeout(resolve, POLL_TIME));
  } while (Date.now() < end);
  throw new Error(`${what}, but there is: ${seen.shown}`);
}

const fold = (text) => text.replace(/\s+/g, ' ').trim();

const ACTIONS = {
  goto: (page, url) => page.goto(url),
  // Chromium asks before it posts a form again, which it tells as a missing page.
  back: (page) => page.goBack().catch((error) => {
    if (!error.message.includes('ERR_CACHE_MISS')) throw error;
  }),
  click: async (page, selector) => {
    await page.click(selector);
    await page.waitForLoadState();
  },
  press: async (page, keys) => {
    for (const key of keys) await page.keyboard.press(key);
    await page.waitForLoadState();
  },
  tabTo: async (page, selector) => {
    for (let presses = 0; presses < 200; presses += 1) {
      await page.keyboard.press('Tab');
      if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return;
    }
    throw new Error(`Tab never comes to ${selector}`);
  },
  type: (page, text) => page.keyboard.type(text),
  fits: async (page) => {
    const [wide, room] = await page.evaluate(() => [
      document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    if (wide > room) throw new Error(`the page is ${wide} px wide, and there are ${room}`);
  },
  fill: (page, [selector, text]) => page.fill(selector, text),
  read: (page, selector) =>
    (selector.startsWith(FRAME) ? page.frameLocator('iframe').locator(selector.slice(FRAME.length)) : page.locator(selector))
      .evaluate((element) => element.value ?? element.innerText),
  measure: async (page, expression) => String(await page.evaluate(expression)),
  expectUrl: (page, pattern) =>
    until(`expected a URL like ${pattern}`, async () => ({
      holds: new RegExp(pattern).test(page.url()),
      shown: page.url(),
    })),
  expectText: (page, text) =>
    until(`expected the text "${text}"`, async () => {
      const shown = fold(await page.locator('body').innerText({ timeout: STEP_TIME }));
      return { holds: shown.includes(fold(text)), shown };
    }),
  screenshot: async (page, path) => {
    await page.screenshot({ path, fullPage: true });
  },
  post: async (page, [url, headers, body]) => {
    headers = { 'content-type': 'application/json', ...headers };
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
  },
  colorScheme: (page, colorScheme) => page.emulateMedia({ colorScheme }),
  accessible: async (page) => {
    await page.evaluate(AXE);
    const { violations } = await page.evaluate((rules) => axe.run({ runOnly: rules }), WCAG);
    if (!violations.length) return;
    const nodes = violations.flatMap(({ id, nodes }) =>
      nodes.slice(0, 3).map((node) => `${id}: ${node.html.slice(0, 300)} ${node.failureSummary}`),
    );
    throw new Error(`axe finds ${violations.length} rules broken\n${nodes.join('\n')}`);
  },
};

async function take(page, step) {
  const [[action, argument], ...rest] = Object.entries(step);
  if (!Object.hasOwn(ACTIONS, action) || rest.length) throw new Error('there is no such step');
  const outcome = await ACTIONS[action](page, argument);
  // The answer to this comes after all that the browser said before.
  const title = await page.title();
  if (refused.length && !allowRefused) throw new Error('the browser refused something');
  const text = ['read', 'measure'].includes(action) ? outcome : null;
  const result = { url: page.url(), title, status, loads, text, consoleErrors, refused };
  [consoleErrors, refused] = [[], []];
  return result;
}

function report(place, error, page) {
  const lines = [`${place}: ${error.message}`];
  if (page) lines.push(`page: ${page.url()}`);
  lines.push(...refused.map((text) => `refused: ${text}`));
  lines.push(...consoleErrors.map((text) => `console: ${text}`));
  // Playwright colours its call log.
  console.error(lines.join('\n').replace(/\x1b\[\d*m/g, ''));
  process.exitCode = 1;
}

async function run(context) {
  const page = context.pages()[0];
  listen(context, page);
  let place = 'before the first step';
  try {
    for (const [index, step] of steps.entries()) {
      place = `step ${index + 1} ${JSON.stringify(step)}`;
      const left = deadline - Date.now();
      if (left <= 0) throw new Error(`the steps before it took all of ${plan.limitSeconds} s`);
      page.setDefaultTimeout(Math.min(STEP_TIME, left));
      console.log(JSON.stringify(await take(page, step)));
    }
    place = 'after the last step';
    await page.title();
    if (refused.length && !allowRefused) throw new Error('the browser refused something');
  } catch (error) {
    report(place, error, page);
  }
}

try {
  const context = await chromium.launchPersistentContext(plan.userDataFolder, {
    executablePath: CHROMIUM,
    headless: true,
    args: ARGUMENTS,
    viewport,
    javaScriptEnabled: javascript,
  });
  await run(context);
  await context.close();
} catch (error) {
  report('Chromium', error);
}
