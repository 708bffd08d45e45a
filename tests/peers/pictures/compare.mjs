// Compares the pages of a seeded `mailgate dev` with the boxes that take.mjs wrote:
//
//   node compare.mjs DEV_JSON BOXES_JSON
//
// Prints what differs, and then ends with 1. Words of other lengths, such as times, and letters of another font move
// boxes a little; a broken layout moves them a lot.
import { readFileSync } from 'node:fs';

import { boxes } from './boxes.mjs';
import { browser } from './pages.mjs';

/** Kinds whose width and place are those of their words. */
const WORDS = new Set(['h1', '.chips', 'input', '.trail', 'button', '.button', 'select', '.tabs', 'label', 'details', 'form', '.foot']);
/** A kind that is only counted: in another font it may be on another line. */
const COUNTED = '.badge';
/** Lines that a paragraph may have more or less, in pixels, and what boxes may move besides, as a share. */
const LINES = 28;
const SHARE = 0.08;
/** What a box of fixed width may move or grow sideways, in pixels. */
const SIDEWAYS = 16;
/** The same where words make the width, which is up to a third less in another font. */
const SIDEWAYS_BY_WORDS = 80;
const SHARE_BY_WORDS = 0.3;
/** Most lines that a failure prints. */
const MOST = 40;

const [announcement, expected] = process.argv.slice(2).map((path) => JSON.parse(readFileSync(path, 'utf8')));
const chrome = await browser();
const { pages, foreign, wide } = await boxes(chrome, announcement);
await chrome.close();

const wrong = [
  ...foreign.map((url) => `a page asks another host: ${url}`),
  ...wide.map((name) => `${name} scrolls sideways`),
];
for (const name of new Set([...Object.keys(expected), ...Object.keys(pages)])) {
  const [before, now] = [expected[name], pages[name]];
  if (!before || !now) wrong.push(`${name} is ${before ? 'missing' : 'new'}`);
  else wrong.push(...differences(before, now).map((words) => `${name}: ${words}`));
}
for (const line of wrong.slice(0, MOST)) console.log(line);
if (wrong.length > MOST) console.log(`and ${wrong.length - MOST} more`);
process.exitCode = wrong.length > 0 ? 1 : 0;

function differences(before, now) {
  const found = [];
  for (const kind of new Set([...Object.keys(before), ...Object.keys(now)])) {
    const [one, other] = [before[kind], now[kind]];
    if (typeof one === 'string' || typeof other === 'string') {
      if (one !== other) found.push(`${kind} colours are ${other}, not ${one}`);
      continue;
    }
    const [count, ...boxesBefore] = one ?? [0];
    const [countNow, ...boxesNow] = other ?? [0];
    // A list may have another entry by now.
    if (Math.abs(count - countNow) > 1 + count * SHARE || (count === 0) !== (countNow === 0)) {
      found.push(`${countNow} ${kind}, not ${count}`);
      continue;
    }
    if (count !== countNow || kind === COUNTED) continue;
    boxesBefore.forEach((box, place) => {
      if (!isNear(kind, box, boxesNow[place])) {
        found.push(`${kind} ${place + 1} is at ${boxesNow[place]}, not ${box} (x, y, width, height)`);
      }
    });
  }
  return found;
}

function isNear(kind, [x, y, width, height], [xNow, yNow, widthNow, heightNow]) {
  const sideways = WORDS.has(kind) ? SIDEWAYS_BY_WORDS + width * SHARE_BY_WORDS : SIDEWAYS;
  const isClose = (one, other, most) => Math.abs(one - other) <= most;
  return isClose(x, xNow, sideways) && isClose(width, widthNow, sideways)
    && isClose(y, yNow, LINES + y * SHARE) && isClose(height, heightNow, LINES + height * SHARE);
}
