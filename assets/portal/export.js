// Says how far an export has come, and saves it once it is whole. Without this script its link is a plain download.
'use strict';

/** The largest file that is held here, in bytes. A larger one is a plain download, which goes to the disk as it comes. */
const LARGEST = 16 * 1024 * 1024;
/** How long the gateway may take to notice that it isn't read any more, in milliseconds. */
const NOTICE = 2_000;
const WHOLE = new Intl.NumberFormat('en');

let exporting = false;

/** Counts the rows below the header: their ends outside of quotes. */
function rowCounter() {
  let [rows, quoted] = [-1, false];
  return (bytes) => {
    for (const byte of bytes) {
      if (byte === 0x22) quoted = !quoted;
      else if (byte === 0x0a && !quoted) rows += 1;
    }
    return Math.max(rows, 0);
  };
}

/** With digits grouped as everywhere else. */
function rowsInWords(rows) {
  return `${WHOLE.format(rows).replaceAll(',', '\u202f')} row${rows === 1 ? '' : 's'}`;
}

/** Says it in the page as it is now: a search may have replaced the link. Only what stays is read out. */
function sayExport(words, stays) {
  const line = document.querySelector('[data-export-said]');
  if (!line) return;
  line.ariaLive = stays ? 'polite' : 'off';
  line.textContent = words;
}

function save(parts, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob(parts, { type: 'text/csv' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

async function exportRows(address) {
  sayExport('Exporting…', true);
  const answer = await fetch(address);
  const name = /filename="([^"]+)"/.exec(answer.headers.get('content-disposition') ?? '')?.[1];
  // Its page says why there is none, or asks to sign in.
  if (!answer.ok || !name) { await answer.body?.cancel(); location.assign(address); return; }
  const [reader, count, parts] = [answer.body.getReader(), rowCounter(), []];
  let [bytes, rows, said] = [0, 0, 0];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.length;
    if (bytes > LARGEST) {
      parts.length = 0;
      await reader.cancel();
      sayExport('This export is large. Your browser downloads it as a file.', true);
      await new Promise((resolve) => { setTimeout(resolve, NOTICE); });
      location.assign(address);
      return;
    }
    parts.push(value);
    rows = count(value);
    if (Date.now() - said > 250) { said = Date.now(); sayExport(`Exporting… ${rowsInWords(rows)}`, false); }
  }
  save(parts, name);
  sayExport(`Exported ${rowsInWords(rows)}.`, true);
}

document.addEventListener('click', (event) => {
  const link = event.target.closest('a[data-export]');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || !window.ReadableStream) return;
  event.preventDefault();
  if (exporting) return;
  exporting = true;
  exportRows(link.href)
    .catch(() => sayExport('The export broke off. Nothing was saved. Try again.', true))
    .finally(() => { exporting = false; });
});
