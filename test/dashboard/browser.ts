/** Finds Chromium and opens pages in it that record forbidden requests and errors. */
import { existsSync } from 'node:fs';
import axe, { type AxeResults } from 'axe-core';
import { type Browser, chromium, type Page } from 'playwright-core';

const PATHS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** Path of Chromium; undefined if there is none. The variable `CHROMIUM` overrides it. */
export const CHROMIUM = [process.env['CHROMIUM'] ?? '', ...PATHS].find(
  (path) => path !== '' && existsSync(path),
);
if (CHROMIUM === undefined)
  console.warn(
    `the dashboard is not tested in a browser: none of ${PATHS.join(', ')} is there, and CHROMIUM names none`,
  );

/** Time limit of each wait, generous for busy machines. */
const LIMIT_MILLIS = 240_000;

export async function openBrowser(): Promise<Browser> {
  if (CHROMIUM === undefined) throw new Error('there is no Chromium');
  return chromium.launch({ executablePath: CHROMIUM, timeout: LIMIT_MILLIS });
}

export interface WatchedPage {
  readonly page: Page;
  /** Requests to addresses other than the node's. */
  readonly outside: string[];
  /** Errors in the browser console, such as content security policy violations, without failed HTTP requests. */
  readonly complaints: string[];
}

/** Opens the dashboard. @param origin of the node, such as `http://127.0.0.1:8101` */
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

/** Returns the accessibility problems that axe rates serious or worse. */
export async function seriousFindings(page: Page): Promise<string[]> {
  // Evaluated by the debugger, because the content security policy forbids scripts in the page.
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
