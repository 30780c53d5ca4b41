/** Chromium, if this machine has one, and a page in it that notes what it must not do. */
import { existsSync } from 'node:fs';
import axe, { type AxeResults } from 'axe-core';
import { type Browser, chromium, type Page } from 'playwright-core';

const PATHS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** Undefined where there is none. `CHROMIUM` names another one. */
export const CHROMIUM = [process.env['CHROMIUM'] ?? '', ...PATHS].find(
  (path) => path !== '' && existsSync(path),
);
if (CHROMIUM === undefined)
  console.warn(
    `the dashboard is not tested in a browser: none of ${PATHS.join(', ')} is there, and CHROMIUM names none`,
  );

/** Not how long it should take: after this it never will. */
const LIMIT_MILLIS = 240_000;

export async function openBrowser(): Promise<Browser> {
  if (CHROMIUM === undefined) throw new Error('there is no Chromium');
  return chromium.launch({ executablePath: CHROMIUM, timeout: LIMIT_MILLIS });
}

export interface WatchedPage {
  readonly page: Page;
  /** Addresses that were asked for and are not of the node. */
  readonly outside: string[];
  /** What the browser complained about, but for answers that are no success: refusals of the content security policy, errors. */
  readonly complaints: string[];
}

/** @param origin of the node, as `http://127.0.0.1:8101` */
export async function openPage(browser: Browser, origin: string, dark = false): Promise<WatchedPage> {
  const context = await browser.newContext({ colorScheme: dark ? 'dark' : 'light', reducedMotion: 'reduce' });
  const page = await context.newPage();
  page.setDefaultTimeout(LIMIT_MILLIS);
  page.setDefaultNavigationTimeout(LIMIT_MILLIS);
  const outside: string[] = [];
  const complaints: string[] = [];
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== origin) outside.push(request.url());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    const isAnswer = message.text().startsWith('Failed to load resource');
    if (message.type() === 'error' && !isAnswer) complaints.push(message.text());
  });
  await page.goto(`${origin}/`);
  return { page, outside, complaints };
}

export async function goTo(page: Page, view: string): Promise<void> {
  await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: view }).click();
  await page.getByRole('heading', { level: 1, name: view }).waitFor();
}

/** The findings of axe that are serious or worse, in a few words each. */
export async function seriousFindings(page: Page): Promise<string[]> {
  // By the debugger: the content security policy lets no script into the page.
  await page.evaluate(axe.source);
  const { violations } = (await page.evaluate('axe.run(document)')) as AxeResults;
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`);
}

/** How much wider the page is than the screen, in pixels. */
export async function overflowOf(page: Page): Promise<number> {
  return Number(await page.evaluate('document.documentElement.scrollWidth - window.innerWidth'));
}
