/** Tests the dashboard in a browser with an open cluster of three processes under load, while a leader is killed. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, TestCluster } from '../cluster/harness.ts';
import {
  CHROMIUM,
  goTo,
  openBrowser,
  openPage,
  overflowOf,
  seriousFindings,
  type WatchedPage,
} from './browser.ts';

const RULE = { id: 'default', limit: 20, windowMillis: 60_000, clock: 'cluster' } as const;
const VIEWS = ['Overview', 'Rules', 'Keys', 'Customers', 'Usage', 'Events'];
const PHONE = { width: 360, height: 740 };
/** The node that serves the page. Another one is killed. */
const PEEKED_AT = 1;
/** Enough users that none is denied often. */
const USERS = 500;

let cluster: TestCluster;
let browser: Browser;
let watched: WatchedPage;
let page: Page;
let isOver = false;
let load: Promise<void>;

/** Sends a few requests at a time to the page's node until the test is over. */
async function keepAsking(): Promise<void> {
  for (let i = 0; !isOver; i += 1) {
    await cluster.allow(PEEKED_AT, { userId: `user-${i % USERS}` }).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function summaryHas(words: string): Promise<void> {
  await page.locator('#summary', { hasText: words }).waitFor();
}

describe.skipIf(CHROMIUM === undefined)('the dashboard of a node', () => {
  beforeAll(async () => {
    cluster = await TestCluster.start({ rules: [RULE], partitions: 8 });
    browser = await openBrowser();
    watched = await openPage(browser, `http://127.0.0.1:${cluster.port(PEEKED_AT)}`);
    ({ page } = watched);
    load = keepAsking();
  });
  afterAll(async () => {
    isOver = true;
    await load;
    await browser.close();
    await cluster.stop();
  });

  it('shows the cluster, and the rate of its answers', async () => {
    await summaryHas('All 3 nodes are up, and every partition has a leader.');
    expect(await page.locator('.node .tile').count()).toBe(24);
    expect(await page.locator('.node .tile.leader').count()).toBe(8);
    await eventually('the rate of answers is shown', async () => {
      const shown = page.locator('.figures div', { hasText: 'requests allowed' }).locator('dd');
      return /^[1-9][^]* a second now$/.test((await shown.textContent()) ?? '') ? true : undefined;
    });
  });

  it('shows live that a leader is killed, which node takes over, and that it returns', async () => {
    const { partitions } = await cluster.status();
    const victim = partitions.map(({ leader }) => leader).find((leader) => leader !== PEEKED_AT) ?? 0;
    await cluster.kill(victim);
    await page.locator(`.node[data-node="${victim}"][data-state="silent"]`).waitFor();
    await summaryHas(`Node ${victim} is down, and the cluster still serves`);
    await page.locator('#summary', { hasText: `npx quorate node ${victim}` }).waitFor();
    await eventually('every partition is led by another node', async () => {
      const leaders = page.locator(`.node:not([data-node="${victim}"]) .tile.leader`);
      return (await leaders.count()) === partitions.length ? true : undefined;
    });
    await goTo(page, 'Events');
    await page.getByText(`Node ${victim} went silent`).waitFor();
    await page.getByText(`lost the leader, node ${victim}`).first().waitFor();
    await page
      .getByText(/Node \d leads \d+ partitions? \(.*\) now/)
      .first()
      .waitFor();
    await goTo(page, 'Overview');
    await cluster.startMissing();
    await summaryHas('All 3 nodes are up');
    expect(await page.locator('.node[data-state="up"]').count()).toBe(3);
  });

  it('says so when its own node is gone, links to the other nodes, and continues when the node is back', async () => {
    await cluster.kill(PEEKED_AT);
    const alert = page.getByRole('alert').filter({ hasText: 'Not live' });
    await alert.waitFor();
    expect(await alert.getByRole('link').allTextContents()).toEqual(['Open node 2', 'Open node 3']);
    expect(await page.locator('.node[data-state="up"]').count()).toBe(0);
    await cluster.startMissing();
    await alert.waitFor({ state: 'detached' });
    await summaryHas('All 3 nodes are up');
  });

  it('shows the status of a key, and the answer to a change', async () => {
    await goTo(page, 'Keys');
    await page.getByLabel('Key, or a value in it').fill('user-1');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'user=user-1', exact: true }).click();
    await page.getByRole('heading', { name: 'user=user-1' }).waitFor();
    await page.getByText(/lets no browser block or reset/).waitFor();
    await page.getByText(/left of 20 in 1 min/).waitFor();
    await goTo(page, 'Usage');
    const byRule = page.getByRole('region', { name: 'By rule', exact: true });
    await byRule.getByRole('rowheader', { name: 'default' }).waitFor();
    // The outcome does not matter, because the node has just started.
    const counts = await byRule.getByRole('cell').allTextContents();
    expect(counts.map((count) => Number(count.replaceAll(',', ''))).some((count) => count > 0)).toBe(true);
  });

  it('shows the changes of edited rules, and that no browser may change an open cluster', async () => {
    await goTo(page, 'Rules');
    await page.getByRole('button', { name: 'Edit the rules' }).click();
    await page.getByText('per-user is added').waitFor();
    await page.getByLabel('Document of rules').fill('rules:\n  - { id: a, key: user }\n');
    await page.getByText(/a rule needs windows/).waitFor();
    expect(await page.getByRole('button', { name: 'Apply this difference' }).isDisabled()).toBe(true);
    await page.getByText(/lets no browser change it/).waitFor();
  });

  it.each(VIEWS)('has no serious accessibility problem, and fits on a phone: %s', async (view) => {
    await goTo(page, view);
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole('button', { name: 'Use dark colours' }).click();
    expect(await seriousFindings(page)).toEqual([]);
    await page.setViewportSize(PHONE);
    expect(await overflowOf(page)).toBeLessThanOrEqual(0);
    await page.setViewportSize({ width: 1_280, height: 800 });
    await page.getByRole('button', { name: 'Use light colours' }).click();
  });

  it('can be used with the keyboard alone', async () => {
    await goTo(page, 'Overview');
    await page.reload();
    await summaryHas('All 3 nodes');
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).toContain('Skip to the view');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement.tagName')).toBe('H1');
    await page.getByRole('link', { name: 'Rules' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Rules' }).waitFor();
    await eventually('the title has the focus', async () =>
      (await page.evaluate('document.activeElement.textContent')) === 'Rules' ? true : undefined,
    );
  });

  it('is watched by checks that can fail', async () => {
    const other = await openPage(browser, `http://127.0.0.1:${cluster.port(PEEKED_AT)}`);
    await other.page.locator('#summary').waitFor();
    await other.page.evaluate(
      `document.querySelector('main').innerHTML = '<button></button><p style="color: red"></p><img src="http://other.example/a">'`,
    );
    expect((await seriousFindings(other.page)).join(' ')).toContain('button-name');
    await eventually('the policy reports a violation', () =>
      ['style', 'img'].every((what) => other.complaints.some((text) => text.includes(what)))
        ? true
        : undefined,
    );
    await other.page.context().close();
  });

  it('sends requests only to its node, and obeys its content security policy', () => {
    expect(watched.outside).toEqual([]);
    expect(watched.complaints).toEqual([]);
  });
});
