// Asks for the page every two seconds. Lists get the entries that are new and lose those that are gone; what stays is
// left alone, with the focus and the selection in it. Everything else is written anew when it has changed.
const update = (old, fresh) => {
  if (old.localName !== 'ul') {
    if (old.innerHTML !== fresh.innerHTML) old.innerHTML = fresh.innerHTML;
    return;
  }
  const entries = [...fresh.children];
  const ids = new Set(entries.map((entry) => entry.id));
  for (const entry of [...old.children]) if (!ids.has(entry.id)) entry.remove();
  entries.forEach((entry, place) => {
    if (old.children[place]?.id !== entry.id) old.insertBefore(entry, old.children[place] ?? null);
  });
};
const ask = async () => {
  try {
    const answer = await fetch(location.href);
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
