/** Tests the overview in a browser: limited keys and rules, and three failures that must be shown differently. */
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ReportedPartition } from '../../src/api/cluster-report.ts';
import { eventually, putDocument, TestCluster } from '../cluster/harness.ts';
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
const DOCUMENT = `rules:
  - { id: per-user, key: user, windows: { limit: 5, per: minute } }
  - { id: trial, key: user, group: trial, windows: { limit: 2, per: minute }, shadow: true }
`;
const NODES = [1, 2, 3, 4, 5];
const PEEKED_AT = 1;
const PHONE = { width: 360, height: 740 };
const SCREEN = { width: 1_280, height: 800 };
/** Copies of each partition on five nodes. Two dead nodes then stop some partitions, but not all. */
const COPIES = 3;

let cluster: TestCluster;
let browser: Browser;
let watched: WatchedPage;
let page: Page;
let isOver = false;
let load: Promise<void> | undefined;

/** Load in which one key is denied often, one rarely, and many never. */
async function keepAsking(): Promise<void> {
  for (let i = 0; !isOver; i += 1) {
    const userId = ['mallory', 'mallory', 'mallory', 'eve', `user-${i % 200}`][i % 5] ?? '';
    await cluster.allow(PEEKED_AT, { userId }).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

function summary(severity: string): Locator {
  return page.locator(`#summary[data-severity="${severity}"]`);
}

function card(node: number, state: string): Locator {
  return page.locator(`.node[data-node="${node}"][data-state="${state}"]`);
}

function figure(name: string): Locator {
  return page.locator('.figures > div', { hasText: name }).locator('dd');
}

/** Collects accessibility problems in both themes and on a phone. */
async function keepsNobodyOut(): Promise<string[]> {
  const found = await seriousFindings(page);
  await page.getByRole('button', { name: 'Use dark colours' }).click();
  found.push(...(await seriousFindings(page)));
  await page.getByRole('button', { name: 'Use light colours' }).click();
  await page.setViewportSize(PHONE);
  if ((await overflowOf(page)) > 0) found.push('the page is wider than a phone');
  const cut = await page.evaluate<number>(
    `[...document.querySelectorAll('.columns .scroll')].filter((each) => each.scrollWidth > each.clientWidth).length`,
  );
  if (cut > 0) found.push(`a phone cuts columns of ${cut} tables`);
  await page.setViewportSize(SCREEN);
  return found;
}

/** Two other nodes that together hold a majority of some partitions, but not of all. */
function pairOf(partitions: readonly ReportedPartition[]): readonly [number, number] {
  const others = NODES.filter((node) => node !== PEEKED_AT);
  for (const a of others)
    for (const b of others) {
      const lost = partitions.filter(({ replicas }) => {
        const left = replicas.filter(({ node }) => node !== a && node !== b).length;
        return replicas.length === COPIES && left < 2;
      });
      if (a !== b && lost.length > 0 && lost.length < partitions.length) return [a, b];
    }
  throw new Error('no two nodes hold a majority of some partitions alone');
}

describe.skipIf(CHROMIUM === undefined)('the overview', () => {
  beforeAll(async () => {
    cluster = await TestCluster.start({ rules: [RULE], nodes: NODES.length, partitions: 16 });
    await putDocument(
      NODES.map((id) => cluster.port(id)),
      DOCUMENT,
    );
    browser = await openBrowser();
    watched = await openPage(browser, `http://127.0.0.1:${cluster.port(PEEKED_AT)}`);
    ({ page } = watched);
    await page.setViewportSize(SCREEN);
  });
  afterAll(async () => {
    isOver = true;
    await load;
    await browser.close();
    await cluster.stop();
  });

  it('says what to do next while there are no requests, and shows no empty table', async () => {
    await summary('well').waitFor();
    await page.getByText('No key was denied in this hour or the one before').waitFor();
    await page.getByText('npx quorate allow ada').waitFor();
    expect(await page.locator('.columns table').count()).toBe(0);
    expect(await page.locator('.charts .legend li').count()).toBe(0);
    // The legend explains only leaders and replicas.
    expect(await page.locator('.picture .legend li').count()).toBe(2);
    expect(await keepsNobodyOut()).toEqual([]);
  });

  it('begins with the keys that are limited most: with rule, end, and a link', async () => {
    load = keepAsking();
    const first = page
      .getByRole('region', { name: 'Keys limited most just now' })
      .locator('tbody tr')
      .first();
    await first.filter({ hasText: 'user=mallory' }).filter({ hasText: 'per-user/minute' }).waitFor();
    await first.getByText(/^in \d+ s$/).waitFor();
    await first.getByText(/\d a second$/).waitFor();
    const href = await first.getByRole('link', { name: 'user=mallory' }).getAttribute('href');
    expect(href).toBe('#/key/user%3Dmallory');
  });

  it('shows how much each rule allowed and denied, and how much a shadow rule would have', async () => {
    const rules = page.getByRole('region', { name: 'By rule, the last 5 minutes' });
    await rules.getByRole('columnheader', { name: 'Would deny' }).waitFor();
    const enforced = rules.getByRole('row').filter({ hasText: 'per-user/minute' });
    await enforced.filter({ hasText: '%' }).waitFor();
    const shadow = rules.getByRole('row').filter({ hasText: 'trial/minute' });
    await shadow.getByText('shadow', { exact: true }).waitFor();
    await shadow.getByText(/^of \d+$/).waitFor();
    const cells = await shadow.getByRole('cell').allTextContents();
    expect(cells.slice(0, 2)).toEqual(['–', '–']);
    expect(Number.parseInt(cells[2] ?? '', 10)).toBeGreaterThan(0);
  });

  it('shows the denied fraction now and before, and the latency of the whole cluster, and is not green', async () => {
    await eventually('most requests are denied', async () => {
      const shown = await figure('denied, of all decisions').textContent();
      return Number.parseInt(shown ?? '', 10) > 50 ? true : undefined;
    });
    await figure('denied, of all decisions').getByText('no requests in the 5 minutes before').waitFor();
    await summary('attention').filter({ hasText: 'denies most' }).waitFor();
    expect(await page.locator('#summary.good').count()).toBe(0);
    await figure('99th percentile, whole cluster')
      .getByText(/^median [\d.,]+ ms, over 10 s$/)
      .waitFor();
    expect(await keepsNobodyOut()).toEqual([]);
  });

  it('shows on the card of each node its latency, disk, lag, clock and memory', async () => {
    for (const node of NODES) {
      const facts = card(node, 'up').locator('.node-facts');
      await facts.getByText(/^[\d.,]+ [KM]iB of [\d.,]+ [KMG]iB \(.* %\)$/).waitFor();
      expect(await facts.locator('dt').allTextContents()).toEqual([
        '99th percentile',
        'disk write',
        'behind by',
        'clock',
        'memory',
      ]);
      expect(await facts.locator('dd').nth(1).textContent()).toMatch(/^[\d.,]+ ms$|^idle$/);
    }
    expect(await page.locator('.node[data-node="1"]').textContent()).toMatch(/[\d.,]+ ms/);
  });

  it('has history from before it was opened, for a day, selected once for the whole page', async () => {
    await page.reload();
    await page.getByRole('radio', { name: '24 h' }).check();
    await page.getByRole('region', { name: 'By rule, the last 24 hours' }).waitFor();
    await figure('denied, of all decisions').getByText('nodes do not keep enough history').waitFor();
    const charts = page.getByRole('region', { name: 'The last 24 hours' });
    // From the current minute or the one before.
    await charts.getByText('allowed', { exact: true }).waitFor();
    await charts.getByText('99th percentile', { exact: true }).waitFor();
    expect(await page.getByRole('radio').count()).toBe(4);
    await page.getByRole('radio', { name: '5 min' }).check();
  });

  it('says when a node is down that the cluster serves and how to start the node, and dates the last figures of the node', async () => {
    const { partitions } = await cluster.status();
    const victim = partitions.map(({ leader }) => leader).find((leader) => leader !== PEEKED_AT) ?? 0;
    await cluster.kill(victim);
    await summary('nodeDown')
      .filter({ hasText: `Node ${victim} is down, and the cluster still serves` })
      .waitFor();
    expect(await summary('nodeDown').locator('code').allTextContents()).toEqual([
      `npx quorate node ${victim}`,
    ]);
    await card(victim, 'silent')
      .getByText(/^as of \d\d:\d\d:\d\d$/)
      .waitFor();
    expect(await card(victim, 'silent').getByRole('link').count()).toBe(0);
    expect(await card(victim, 'silent').locator('.mark.good').count()).toBe(0);
    expect(await page.locator('.node.old').count()).toBe(1);
    expect(await keepsNobodyOut()).toEqual([]);
    // The other pages show the notice, too.
    await goTo(page, 'Events');
    await summary('nodeDown').waitFor();
    await page.getByText(`Node ${victim} went silent`).waitFor();
    await goTo(page, 'Overview');
    await cluster.startMissing();
    await card(victim, 'up').waitFor();
  });

  it('says which fraction of the keys has no decision while partitions have no leader', async () => {
    const { partitions } = await cluster.status();
    const pair = pairOf(partitions);
    await Promise.all(pair.map(async (node) => cluster.kill(node)));
    const alert = summary('noLeader');
    await alert.filter({ hasText: /partitions? \(.*\) ha(s|ve) no leader: requests for about \d/ }).waitFor();
    expect(await alert.getAttribute('role')).toBe('alert');
    for (const node of pair) await alert.getByText(`npx quorate node ${node}`).waitFor();
    await page.locator('.picture .legend', { hasText: 'without a leader' }).waitFor();
    expect(await keepsNobodyOut()).toEqual([]);
  });

  it('shows an outage when all nodes are down: dated, with no node up and no link to another node', async () => {
    const left = NODES.filter((node) => node !== PEEKED_AT);
    await Promise.all(left.map(async (node) => cluster.kill(node)));
    for (const node of left) await card(node, 'silent').waitFor();
    await summary('outage').filter({ hasText: 'no partition has a leader' }).waitFor();
    await cluster.kill(PEEKED_AT);
    await summary('outage')
      .filter({ hasText: 'total outage' })
      .filter({ hasText: 'this page is old' })
      .waitFor();
    expect(await summary('outage').locator('code').allTextContents()).toEqual(['npx quorate node <id>']);
    expect(await page.locator('#summary a').count()).toBe(0);
    expect(await page.locator('.node[data-state="silent"] .as-of').count()).toBe(NODES.length);
    expect(await page.locator('.node a').count()).toBe(0);
    expect(await page.locator('.node .mark.good').count()).toBe(0);
    await page
      .locator('.toolbar')
      .getByText(/^as of \d\d:\d\d:\d\d$/)
      .waitFor();
    expect(await page.getByText('a second now').count()).toBe(0);
    expect(await keepsNobodyOut()).toEqual([]);
    await cluster.startMissing();
    await summary('outage').waitFor({ state: 'detached' });
    await card(PEEKED_AT, 'up').waitFor();
  });

  it('sends requests only to its node, and obeys its content security policy', () => {
    expect(watched.outside).toEqual([]);
    expect(watched.complaints).toEqual([]);
  });
});
