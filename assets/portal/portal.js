// What scripts add to pages that work without them: local times, copy buttons, questions in a dialog, busy buttons,
// parts that keep up to date, and keyboard shortcuts.
'use strict';

/** The reader's time zone, or UTC by the switch in the settings. */
const IS_UTC = localStorage.getItem('times') === 'utc';
const formatter = (parts) => new Intl.DateTimeFormat(undefined, { hourCycle: 'h23', ...(IS_UTC && { timeZone: 'UTC' }), ...parts });
const EXACT = formatter({ dateStyle: 'medium', timeStyle: 'medium' });
const DAY = formatter({ dateStyle: 'medium' });
const YEAR = formatter({ year: 'numeric' });
const DAY_AND_TIME = formatter({ day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
const RELATIVE = new Intl.RelativeTimeFormat('en', { style: 'short' });
const TIME = formatter({ hour: '2-digit', minute: '2-digit' });

/** The time today, the day and time this year, else the day. */
function short(moment, now) {
  if (DAY.format(moment) === DAY.format(now)) return TIME.format(moment);
  return (YEAR.format(moment) === YEAR.format(now) ? DAY_AND_TIME : DAY).format(moment);
}

/** `3 min ago`, `in 2 h`; nothing for what is over a day away. */
function ago(moment, now) {
  const seconds = Math.round((moment - now) / 1_000);
  for (const [unit, length, end] of [['second', 1, 60], ['minute', 60, 3_600], ['hour', 3_600, 86_400]]) {
    if (Math.abs(seconds) < end) return RELATIVE.format(Math.trunc(seconds / length), unit);
  }
  return '';
}

/** Shows moments in the reader's time zone; their titles have them in UTC. */
function localTimes(root) {
  for (const time of root.querySelectorAll('time[datetime]:not([data-local])')) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    time.dataset.local = '';
    const now = new Date();
    const words = 'exact' in time.dataset ? [EXACT.format(moment)] : [short(moment, now)];
    if ('ago' in time.dataset) words.push(ago(moment, now));
    time.textContent = words.filter(Boolean).join(' · ');
  }
}

/** Shows the buttons that need a script. */
function copyButtons(root) {
  for (const button of root.querySelectorAll('button[data-copy]')) button.hidden = !navigator.clipboard;
  for (const button of root.querySelectorAll('button[data-times]')) {
    button.hidden = false;
    button.textContent = IS_UTC ? 'Show times in my time zone' : 'Show times in UTC';
  }
}

async function copy(button) {
  const part = document.getElementById(button.dataset.copy);
  const text = (part instanceof HTMLInputElement ? part.value : part?.textContent) ?? '';
  await navigator.clipboard.writeText(text);
  const words = button.textContent;
  button.textContent = 'Copied';
  setTimeout(() => { button.textContent = words; }, 2000);
}

/** Asks in a dialog what the link's page would ask; where that can't be read, the page opens. */
async function ask(link) {
  const answer = await fetch(link.href);
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const [title, question] = [page.querySelector('h1'), page.querySelector('[data-ask]')];
  if (!answer.ok || answer.redirected || !question) {
    location.assign(link.href);
    return;
  }
  const dialog = document.createElement('dialog');
  const heading = document.createElement('h2');
  heading.id = 'dialog-title';
  heading.textContent = title.textContent;
  dialog.setAttribute('aria-labelledby', heading.id);
  dialog.append(heading, document.adoptNode(question));
  dialog.addEventListener('close', () => { dialog.remove(); link.focus(); });
  document.body.append(dialog);
  dialog.showModal();
}

/** From this width on, a message opens beside its list. */
const BESIDE = matchMedia('(min-width: 87.5rem)');

/** The row that was clicked last. */
let previewed;

/** Shows a row's message beside the list; where it can't be read, its page opens. */
async function preview(row) {
  previewed = row;
  const answer = await fetch(row.href, { cache: 'no-store' });
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const [title, badge, message] = [page.querySelector('h1'), page.querySelector('#badge'), page.querySelector('[data-live]')];
  const pane = document.getElementById('preview');
  if (!answer.ok || answer.redirected || !message || !pane) { location.assign(row.href); return; }
  if (previewed !== row) return;
  message.removeAttribute('data-live');
  message.querySelector('.foot')?.remove();
  const heading = Object.assign(document.createElement('h2'), { textContent: title.textContent });
  const open = Object.assign(document.createElement('a'), { href: row.href, textContent: 'Open', className: 'button' });
  const close = Object.assign(document.createElement('button'), { type: 'button', textContent: 'Close' });
  const line = Object.assign(document.createElement('div'), { className: 'actions' });
  line.append(...(badge ? [badge] : []), open, close);
  pane.replaceChildren(heading, line, message);
  pane.hidden = false;
  pane.scrollTop = 0;
  const mark = (link) => {
    document.querySelector('#results a[aria-current]')?.removeAttribute('aria-current');
    link?.setAttribute('aria-current', 'true');
  };
  mark(row);
  close.onclick = () => { pane.hidden = true; mark(); row.focus(); };
  enhance(pane);
}

document.addEventListener('click', (event) => {
  const row = event.target.closest('#results a.row:not([aria-current])');
  if (row && BESIDE.matches && document.getElementById('preview') && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    preview(row).catch(() => location.assign(row.href));
    return;
  }
  const button = event.target.closest('button[data-copy]');
  if (button) { copy(button); return; }
  if (event.target.closest('button[data-times]')) {
    localStorage.setItem('times', IS_UTC ? 'local' : 'utc');
    location.reload();
    return;
  }
  if (event.target.closest('dialog [data-close]')) {
    event.preventDefault();
    event.target.closest('dialog').close();
    return;
  }
  const link = event.target.closest('a[data-dialog]');
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    ask(link).catch(() => location.assign(link.href));
  }
});

/** A button whose form is on its way is busy, and the form isn't sent twice. */
document.addEventListener('submit', (event) => {
  const form = event.target;
  if (form.method !== 'post') return;
  if (form.dataset.sending !== undefined) { event.preventDefault(); return; }
  form.dataset.sending = '';
  event.submitter?.setAttribute('aria-busy', 'true');
  // The reader may have stopped it.
  setTimeout(() => ready(form), 15_000);
});

function ready(form) {
  delete form.dataset.sending;
  for (const button of form.querySelectorAll('[aria-busy]')) button.removeAttribute('aria-busy');
}

/** A page that comes back from the browser's memory has nothing on its way. */
window.addEventListener('pageshow', () => {
  for (const form of document.querySelectorAll('form[data-sending]')) ready(form);
});

/** How often a live part is looked at, and how long after the last sign of its reader; in milliseconds. */
const POLL = 4_000;
const ATTENTION = 15 * 60_000;

/** What a live part shows, in a form that can be compared. */
function keys(part) {
  return [...part.querySelectorAll('[data-key]')].map((row) => row.dataset.key).join();
}

/**
 * Keeps the part of a page that is marked `data-live` up to date, and says when it was. What is being read isn't moved:
 * with the page scrolled, or the focus or a selection in the part, a button offers the news.
 */
function keepLive() {
  let [seen, updated, ended] = [Date.now(), Date.now(), false];
  for (const sign of ['pointermove', 'keydown', 'scroll', 'focus']) {
    window.addEventListener(sign, () => { seen = Date.now(); }, { passive: true });
  }
  const part = () => document.querySelector('[data-live]');
  const say = (words) => {
    const line = part()?.querySelector('[data-live-said]');
    if (line) line.textContent = words;
  };
  const isRead = (live) => {
    const selection = document.getSelection();
    return window.scrollY > 0 || live.contains(document.activeElement)
      || (!selection.isCollapsed && live.contains(selection.anchorNode));
  };
  const show = (live, fresh, page) => {
    // Parts of the page's head that go with it, by their ids.
    for (const head of document.querySelectorAll('[data-live-with]')) {
      const other = page.getElementById(head.id);
      if (other) { head.replaceWith(other); enhance(other); }
    }
    live.replaceWith(fresh);
    enhance(fresh);
    window.htmx?.process(fresh);
  };
  async function look() {
    const [live, address] = [part(), location.href];
    if (!live || ended || document.hidden || Date.now() - seen > ATTENTION) return;
    const answer = await fetch(address, { cache: 'no-store', signal: AbortSignal.timeout(POLL * 5) });
    ended = answer.redirected;
    if (ended && !new URL(answer.url).pathname.startsWith('/portal/sign-in')) { location.assign(answer.url); return; }
    if (ended) { say('You are signed out. Load the page again.'); return; }
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const fresh = page.querySelector('[data-live]');
    // The reader may have gone on meanwhile.
    if (!fresh || part() !== live || location.href !== address) return;
    const isNew = keys(fresh) !== keys(live);
    // What is offered but not shown leaves the page as old as it is.
    if (!isNew || !isRead(live)) updated = Date.now();
    if (!isNew) return;
    if (!isRead(live)) { show(live, fresh, page); return; }
    const button = live.querySelector('[data-live-news]');
    if (!button) return;
    button.hidden = false;
    button.onclick = () => { updated = Date.now(); show(live, fresh, page); window.scrollTo({ top: 0 }); };
  }
  setInterval(() => {
    if (!ended) say(`Updated ${Math.round((Date.now() - updated) / 1_000)} s ago`);
  }, 1_000);
  (async function again() {
    await look().catch(() => {});
    setTimeout(again, POLL);
  })();
}

/** The button that lists the shortcuts. */
function shortcutsButton(root) {
  for (const button of root.querySelectorAll('[data-shortcuts]')) {
    button.hidden = false;
    button.onclick = shortcutsDialog;
  }
}

function enhance(root) { localTimes(root); copyButtons(root); shortcutsButton(root); }
document.addEventListener('htmx:load', (event) => enhance(event.detail.elt.parentElement ?? document));
// A search that is wrong is answered with what to change.
document.addEventListener('htmx:beforeSwap', (event) => {
  if (event.detail.xhr.status === 422) event.detail.shouldSwap = true;
});
enhance(document);
keepLive();

/** Where the keys behind `g` go. */
const PLACES = {
  o: ['Overview', '/portal'], m: ['Messages', '/portal/messages'], b: ['Mailboxes', '/portal/mailboxes'],
  w: ['Webhooks', '/portal/webhooks'], a: ['Apps', '/portal/apps'], s: ['Settings', '/portal/settings'],
};
/** Where the wish for no shortcuts is stored. */
const OFF = 'mailgate-shortcuts-off';

function shortcutsDialog() {
  const dialog = document.createElement('dialog');
  dialog.setAttribute('aria-labelledby', 'keys-title');
  const heading = Object.assign(document.createElement('h2'), { id: 'keys-title', textContent: 'Keyboard shortcuts' });
  const list = document.createElement('dl');
  const line = (keys, words) => {
    const key = Object.assign(document.createElement('code'), { textContent: keys });
    const name = document.createElement('dt');
    name.append(key);
    list.append(name, Object.assign(document.createElement('dd'), { textContent: words }));
  };
  line('/', 'Search');
  for (const [key, [name]] of Object.entries(PLACES)) line(`g ${key}`, name);
  line('↓ ↑', 'Next and previous row');
  line('?', 'This list');
  const label = Object.assign(document.createElement('label'), { className: 'choice' });
  const box = Object.assign(document.createElement('input'), { type: 'checkbox', checked: !localStorage.getItem(OFF) });
  box.addEventListener('change', () => { box.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, '1'); });
  label.append(box, ' Use them in this browser');
  const close = Object.assign(document.createElement('button'), { type: 'button', textContent: 'Close' });
  close.dataset.close = '';
  dialog.append(heading, list, label, close);
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** Moves the focus to another row; true: there is one. */
function moveRow(step) {
  const rows = [...document.querySelectorAll('.rows a.row')];
  const at = rows.indexOf(document.activeElement);
  const next = at < 0 ? undefined : rows[at + step];
  next?.focus();
  return next !== undefined;
}

/** One key at a time, outside of fields; the browser's own are left alone. */
function shortcuts() {
  let begun = 0;
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.closest('input, textarea, select, dialog, [contenteditable]')) return;
    const off = localStorage.getItem(OFF);
    const follows = Date.now() - begun < 1_500;
    begun = 0;
    if (event.key === '?') shortcutsDialog();
    else if (off) return;
    else if (follows && PLACES[event.key]) location.assign(PLACES[event.key][1]);
    else if (event.key === 'g') { begun = Date.now(); return; }
    else if (event.key === '/') {
      const box = document.getElementById('q');
      box ? box.focus() : location.assign('/portal/messages#q');
    } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      // Without a row in focus, the arrows scroll.
      if (!document.activeElement?.matches('.rows a.row') || !moveRow(event.key === 'ArrowDown' ? 1 : -1)) return;
    } else return;
    event.preventDefault();
  });
  if (location.hash === '#q') document.getElementById('q')?.focus();
}
if (document.querySelector('.side')) shortcuts();

/** What was done is said once, not after a reload. */
function saidOnce() {
  const here = new URL(location.href);
  if (!here.searchParams.has('done')) return;
  here.searchParams.delete('done');
  history.replaceState(history.state, '', here);
}
saidOnce();
