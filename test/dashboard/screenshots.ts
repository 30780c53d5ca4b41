/**
 * `npm run screenshots`: takes the pictures of the console for the documents. It uses Chromium and a cluster of three
 * processes under load, and kills one of them at the end. It exits with 1 if there is no Chromium.
 */
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { putDocument, TestCluster } from '../cluster/harness.ts';
import { CHROMIUM, goTo, openBrowser, openPage } from './browser.ts';

const FOLDER = join(process.cwd(), 'cluster', 'dashboard');
const SCREEN = { width: 1_280, height: 900 };
const NODES = [1, 2, 3];
const PEEKED_AT = 1;
const OTHER = 2;
const KILLED = 3;
const JSON_HEADERS = { 'content-type': 'application/json' };
const REQUEST_EVERY_MILLIS = 12;
const WAIT_MILLIS_MAX = 30_000;
/** Time for the charts and lists of keys to fill. */
const LOAD_MILLIS = 75_000;
const RULE = { id: 'default', limit: 100, windowMillis: 60_000, clock: 'cluster' } as const;
const DOCUMENT = `# Limits of the public API. Ask the platform team before you raise one.
rules:
  - id: per-user
    key: user
    windows: [{ limit: 20, per: minute }, { limit: 2000, per: day }]

  - id: reports # they are expensive
    match: { endpoint: /api/reports/* }
    key: user
    group: reports
    windows: { limit: 30, per: hour }

  - id: stricter # tried before it denies
    key: user
    group: stricter
    windows: { limit: 10, per: minute }
    shadow: true
`;
const STRICTER = DOCUMENT.replace('limit: 20, per: minute', 'limit: 15, per: minute');

async function main(): Promise<void> {
  if (CHROMIUM === undefined) {
    process.exitCode = 1;
    return;
  }
  const cluster = await TestCluster.start({ rules: [RULE], nodes: NODES.length, partitions: 6 });
  const browser = await openBrowser();
  let isOver = false;
  const load = keepAsking(cluster, () => isOver);
  try {
    const ports = NODES.map((id) => cluster.port(id));
    await putDocument(ports, DOCUMENT);
    const { page } = await openPage(browser, `http://127.0.0.1:${cluster.port(PEEKED_AT)}`);
    page.setDefaultTimeout(WAIT_MILLIS_MAX);
    await page.setViewportSize(SCREEN);
    await page.waitForTimeout(LOAD_MILLIS);
    await take(page, 'overview');
    await page.getByRole('link', { name: 'user=mallory' }).first().click();
    await page.getByRole('heading', { name: 'user=mallory' }).waitFor();
    await page.waitForTimeout(2_000);
    await take(page, 'key');
    await goTo(page, 'Rules');
    await take(page, 'rules');
    await page.getByRole('button', { name: 'Edit the rules' }).click();
    await page.getByLabel('Document of rules').fill(STRICTER);
    await take(page, 'editor');
    await goTo(page, 'Overview');
    await cluster.kill(KILLED);
    await page.locator(`.node[data-node="${KILLED}"][data-state="silent"]`).waitFor();
    await take(page, 'node-down');
  } finally {
    isOver = true;
    await load;
    await browser.close();
    await cluster.stop();
  }
}

/** Load in which one key is denied often, one rarely, and many never. */
async function keepAsking(cluster: TestCluster, isOver: () => boolean): Promise<void> {
  for (let i = 0; !isOver(); i += 1) {
    const user = ['mallory', `user-${i % 40}`, `user-${i % 97}`, 'eve', `user-${i % 53}`][i % 5] ?? '';
    const endpoint = i % 7 === 0 ? '/api/reports/daily' : '/api/orders';
    const port = cluster.port(i % 2 === 0 ? PEEKED_AT : OTHER);
    const body = JSON.stringify({ descriptors: { user, endpoint } });
    await fetch(`http://127.0.0.1:${port}/v1/allow`, { method: 'POST', headers: JSON_HEADERS, body })
      .then((response) => response.text())
      .catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, REQUEST_EVERY_MILLIS));
  }
}

async function take(page: Page, name: string): Promise<void> {
  await page.evaluate('window.scrollTo(0, 0)');
  const path = join(FOLDER, `${name}.png`);
  await page.screenshot({ path, fullPage: name !== 'key' });
  process.stdout.write(`${path}\n`);
}

await main();
