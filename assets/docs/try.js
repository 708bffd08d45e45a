// Swagger UI follows a class, and doesn't ask the system.
const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', follow);
follow();

// Names and roles that Swagger UI lacks for screen readers and the keyboard.
const ATTRIBUTES = [
  ['#servers', { 'aria-label': 'Server' }],
  ['.content-type', { 'aria-label': 'Media type' }],
  ['.parameters select:not([aria-label])', { 'aria-label': 'Value' }],
  ['.close-modal', { 'aria-label': 'Close' }],
  ['h3.opblock-tag, .modal-ux h3', { role: 'heading', 'aria-level': '2' }],
  ['.opblock h4, .modal-ux h4', { role: 'heading', 'aria-level': '3' }],
  ['.opblock h5, .modal-ux h5', { role: 'heading', 'aria-level': '4' }],
  // The heading above it names it.
  ['table.responses-table', { role: 'table', 'aria-live': 'off' }],
];
const complete = () => {
  for (const [selector, attributes] of ATTRIBUTES) {
    for (const element of document.querySelectorAll(selector)) {
      for (const [name, value] of Object.entries(attributes)) {
        if (element.getAttribute(name) !== value) element.setAttribute(name, value);
      }
    }
  }
  document.querySelectorAll('.modal-ux button.authorize').forEach((it) => it.removeAttribute('aria-label'));
  // The button around it opens the operation.
  document.querySelectorAll('.opblock-summary-control a').forEach((it) => it.removeAttribute('href'));
};
new MutationObserver(complete).observe(document.body, { childList: true, subtree: true });
