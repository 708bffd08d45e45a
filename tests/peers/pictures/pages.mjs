// The pages of a seeded `mailgate dev` that are pictured, and a signed-in browser to see them with.
import { createRequire } from 'node:module';

const require = createRequire(process.execPath);
const { chromium } = require('playwright-core');

/** Longest that a page may take, on a machine that is busy; in milliseconds. */
const PATIENCE = 120_000;

export const VIEWPORTS = [{ width: 1280, height: 900 }, { width: 390, height: 844 }];
export const SCHEMES = ['light', 'dark'];

/** A browser from which nothing leaves this machine. */
export const browser = () => chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking',
    '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost'],
});

/** A tab, signed in. `foreign` collects the requests to other hosts. */
export async function tab(chrome, dev, viewport, colorScheme) {
  const context = await chrome.newContext({ viewport, colorScheme, locale: 'en-GB', timezoneId: 'Europe/Berlin' });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  const foreign = [];
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.protocol.startsWith('http') && url.hostname !== '127.0.0.1') foreign.push(request.url());
  });
  await page.goto(`${dev.base_url}/portal/sign-in`);
  await page.fill('#api-secret', dev.subscriber.api_secret);
  await page.press('#api-secret', 'Enter');
  await page.waitForURL(/\/portal$/);
  return { page, foreign, close: () => context.close() };
}

/** Names and URLs of all pages, by what a tab finds in the lists. */
export async function pages(dev, page) {
  const first = async (path, selector = 'tbody a') => {
    await page.goto(dev.base_url + path);
    return page.locator(selector).first().evaluate((link) => link.getAttribute('href'));
  };
  const app = `/portal/apps/${dev.app.app_id}`;
  const endpoint = await first('/portal/webhooks');
  const portal = {
    'sign-in': '/portal/sign-in',
    overview: '/portal',
    messages: '/portal/messages',
    'message-waiting': await first('/portal/messages?status=failed_temp'),
    'message-bounced': await first('/portal/messages?status=bounced'),
    mailboxes: '/portal/mailboxes',
    mailbox: await first('/portal/mailboxes'),
    'mailbox-disconnected': await first('/portal/mailboxes?status=disconnected'),
    apps: '/portal/apps',
    'app-quickstart': app,
    'app-keys': `${app}#send-keys`,
    'app-connect': `${app}#connect`,
    'app-activity': `${app}#activity`,
    'app-settings': `${app}#options`,
    webhooks: '/portal/webhooks',
    webhook: endpoint,
    'webhook-delivery': await first(`${endpoint}?success=true`),
    billing: '/portal/billing',
    settings: '/portal/settings',
    'settings-secrets': '/portal/settings#secrets',
    'settings-sessions': '/portal/settings#sessions',
    'settings-audit': '/portal/settings#audit',
    components: '/portal/_components',
    docs: '/docs',
  };
  const all = Object.entries(portal).map(([name, path]) => [name, dev.base_url + path]);
  return Object.fromEntries([
    ...all,
    ['connect', `${dev.connect_url}?plugin=plugin_b`],
    ['sandbox', dev.sandbox_url],
  ]);
}

/** What is newest, and so of another length at another time of day: these are pictured, not compared. */
export const UNSTEADY = new Set(['message-waiting', 'webhook-delivery']);

/** Opens a page. The form to sign in is for those who aren't. */
export async function open(page, name, url) {
  // A mere change of the fragment loads nothing.
  await page.goto('about:blank');
  const cookies = await page.context().cookies();
  if (name === 'sign-in') await page.context().clearCookies();
  await page.goto(url);
  await page.evaluate(() => document.fonts.ready);
  if (name === 'sign-in') await page.context().addCookies(cookies);
  if (name === 'sandbox') {
    await page.locator('#messages a').first().click();
    await page.frameLocator('.preview iframe').locator('body *').first().waitFor();
  }
}
