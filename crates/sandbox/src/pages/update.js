// Asks for the list every two seconds. It gets the entries that are new and loses those that are gone; what stays is
// left alone, with the focus and the selection in it, but for its mark. Everything else is written anew when it has
// changed. The message beside the list is never touched.
const source = document.querySelector('[data-live-from]')?.dataset.liveFrom ?? location.href;
const mark = (old, fresh) => {
  if (old.className === fresh.className) return;
  old.className = fresh.className;
  const [state, news] = [old, fresh].map((entry) => entry.querySelector('.state'));
  if (state && news) state.innerHTML = news.innerHTML;
};
const update = (old, fresh) => {
  if (old.localName !== 'ul') {
    if (old.innerHTML !== fresh.innerHTML) old.innerHTML = fresh.innerHTML;
    return;
  }
  const entries = [...fresh.children];
  const ids = new Set(entries.map((entry) => entry.id));
  for (const entry of [...old.children]) if (!ids.has(entry.id)) entry.remove();
  entries.forEach((entry, place) => {
    const there = old.children[place];
    if (there?.id === entry.id) mark(there, entry);
    else old.insertBefore(entry, there ?? null);
  });
};
const ask = async () => {
  try {
    const answer = await fetch(source);
    if (answer.ok) {
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      for (const old of document.querySelectorAll('[data-live]')) {
        const fresh = page.getElementById(old.id);
        if (fresh) update(old, fresh);
      }
    }
  } catch {
    // The sandbox is away; it is asked again.
  }
  setTimeout(ask, 2000);
};
setTimeout(ask, 2000);
document.getElementById('messages')?.addEventListener('keydown', (event) => {
  const step = { ArrowDown: 'nextElementSibling', ArrowUp: 'previousElementSibling' }[event.key];
  const next = step && event.target.closest('li')?.[step]?.querySelector('a');
  if (!next) return;
  event.preventDefault();
  next.focus();
});
// The opened message's row is in view; nothing else moves.
const row = document.querySelector('#messages [aria-current]');
const box = row?.closest('ul');
if (box && box.scrollHeight > box.clientHeight) {
  box.scrollTop = row.offsetTop - box.offsetTop - (box.clientHeight - row.offsetHeight) / 2;
}
