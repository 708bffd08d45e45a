// What scripts add to pages that work without them: local times, copy buttons, questions in a dialog.
'use strict';

/** Shows moments in local time; their titles say them in UTC. */
function localTimes(root) {
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
  for (const time of root.querySelectorAll('time[datetime]:not([title])')) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    time.title = time.textContent;
    time.textContent = format.format(moment);
  }
}

/** Shows the buttons that need a script. */
function copyButtons(root) {
  for (const button of root.querySelectorAll('button[data-copy]')) button.hidden = !navigator.clipboard;
}

async function copy(button) {
  const text = document.getElementById(button.dataset.copy)?.textContent ?? '';
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

document.addEventListener('click', (event) => {
  const button = event.target.closest('button[data-copy]');
  if (button) { copy(button); return; }
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

function enhance(root) { localTimes(root); copyButtons(root); }
document.addEventListener('htmx:load', (event) => enhance(event.detail.elt.parentElement ?? document));
// A search that is wrong is answered with what to change.
document.addEventListener('htmx:beforeSwap', (event) => {
  if (event.detail.xhr.status === 422) event.detail.shouldSwap = true;
});
enhance(document);
