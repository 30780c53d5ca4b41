/** Tests the keys views in a browser: search by value, limits and their ends, block, reset and refund. */
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
import { ClosedCluster } from './closed-cluster.ts';

const RULE = { id: 'default', limit: 20, windowMillis: 60_000, clock: 'cluster' } as const;
const DOCUMENT = `rules:
  - { id: per-user, key: user, windows: { limit: 5, per: hour } }
  - { id: searches, match: { endpoint: /search }, key: [endpoint, user], group: searches, windows: { limit: 40, per: hour } }
  - { id: partner, match: { user: partner-7 }, key: user, group: partner, windows: { limit: 3, per: hour } }
  - { id: per-customer, key: customer, windows: { limit: 500, per: hour } }
  - { id: tighter, key: user, group: trial, windows: { limit: 2, per: hour }, shadow: true }
`;
const MALLORY = { user: 'mallory', endpoint: '/search' };
const CLICKS_MAX = 5;
const PHONE = { width: 360, height: 740 };
const DESKTOP = { width: 1_280, height: 800 };

let closed: ClosedCluster;
let browser: Browser;
let watched: WatchedPage;
let page: Page;

async function clicks(): Promise<number> {
  return Number(await page.evaluate('window.clicksCounted ?? 0'));
}

async function verdictHas(words: string | RegExp): Promise<void> {
  await page.locator('#verdict', { hasText: words }).waitFor();
}

async function find(text: string): Promise<void> {
  await page.getByLabel('Key, or a value in it').fill(text);
  await page.keyboard.press('Enter');
}

async function isFineEverywhere(): Promise<readonly unknown[]> {
  const findings: unknown[] = [...(await seriousFindings(page))];
  await page.getByRole('button', { name: 'Use dark colours' }).click();
  findings.push(...(await seriousFindings(page)));
  await page.getByRole('button', { name: 'Use light colours' }).click();
  await page.setViewportSize(PHONE);
  const overflow = await overflowOf(page);
  if (overflow > 0) findings.push(`${overflow} pixels wider than a phone`);
  await page.setViewportSize(DESKTOP);
  return findings;
}

describe.skipIf(CHROMIUM === undefined)('the page of a key', () => {
  beforeAll(async () => {
    closed = new ClosedCluster(await TestCluster.start({ rules: [RULE], partitions: 4 }));
    const admin = await closed.token('admin');
    await closed.changeRules(DOCUMENT);
    await eventually('mallory is denied', async () =>
      (await closed.allow(MALLORY)) === 429 ? true : undefined,
    );
    await closed.allowOften(30, MALLORY);
    await closed.allowOften(3, { user: 'ada' });
    await closed.allowOften(1, { customer: 'mallory' });
    browser = await openBrowser();
    watched = await openPage(browser, `http://127.0.0.1:${closed.cluster.port(1)}`);
    ({ page } = watched);
    await page.getByLabel('Token').fill(admin);
    await page.keyboard.press('Enter');
    await page.getByText('admin token').waitFor();
  });
  afterAll(async () => {
    await browser.close();
    await closed.cluster.stop();
  });

  it('is reached from the console, shows rule and end of a limit, and lifts it, in five clicks', async () => {
    await page.evaluate(
      'window.clicksCounted = 0, addEventListener("click", () => { window.clicksCounted += 1; }, true)',
    );
    await goTo(page, 'Usage');
    const denied = page.getByRole('region', { name: /^Denied most/ });
    const most = denied.getByRole('row').nth(1);
    await most.getByRole('link', { name: 'user=mallory', exact: true }).waitFor();
    expect(await most.getByRole('rowheader').textContent()).toBe('user=malloryper-user/hour');
    await most.getByRole('link').click();
    await verdictHas(/^Denied by per-user\/hour for .*, until \d\d:\d\d:\d\d\.$/);
    await page.getByRole('button', { name: 'Reset…' }).click();
    await page.getByRole('button', { name: 'Yes, forget what was granted' }).click();
    await verdictHas('Nothing counted; 5 of 5 left under per-user/hour');
    expect(await clicks()).toBeLessThanOrEqual(CLICKS_MAX);
    expect(await closed.allow(MALLORY)).toBe(200);
  });

  it('shows only the limits that count the key, those in shadow separately', async () => {
    await verdictHas('4 of 5 left under per-user/hour');
    const binding = page.getByRole('region', { name: 'Limits that count it' });
    await binding.getByText('4 left of 5 in 1 h').waitFor();
    expect(await binding.getByRole('listitem').filter({ hasText: 'left of' }).count()).toBe(1);
    const shadow = page.getByRole('region', { name: 'In shadow: what these would do' });
    await shadow.getByText('1 left of 2 in 1 h').waitFor();
    expect(await page.getByText('partner').count()).toBe(0);
    await page.getByText(/\d+ denied by per-user\/hour since/).waitFor();
    expect(await isFineEverywhere()).toEqual([]);
  });

  it('blocks the key for a time after a confirmation, and unblocks it again', async () => {
    await page.getByRole('button', { name: 'Block…' }).click();
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByLabel(/Minutes/).fill('90');
    await page.getByRole('button', { name: 'Yes, deny everything for 1 h 30 min' }).click();
    await verdictHas(/^Blocked, for 1 h \d+ min more, until \d\d:\d\d:\d\d\.$/);
    expect(await closed.allow(MALLORY)).toBe(403);
    await page.getByRole('button', { name: 'Unblock' }).click();
    await verdictHas('left under per-user/hour');
    expect(await closed.allow(MALLORY)).toBe(200);
  });

  it('does not block without the confirmation', async () => {
    await page.getByRole('button', { name: 'Block…' }).click();
    await page.getByRole('button', { name: 'Cancel' }).click();
    expect(await closed.allow({ user: 'mallory' })).toBe(200);
    expect(await page.getByRole('button', { name: 'Unblock' }).count()).toBe(0);
  });

  it('refunds a request by its id and its other descriptors', async () => {
    expect(await closed.allow(MALLORY, 'checkout-7')).toBe(200);
    await verdictHas('1 of 5 left under per-user/hour');
    await page.getByRole('button', { name: 'Refund a request…' }).click();
    await page.getByLabel('Request id').fill('no-such-id');
    await page.getByRole('button', { name: 'Yes, refund this request' }).click();
    await page.getByText(/no grant is remembered/).waitFor();
    await page.getByLabel('Request id').fill('checkout-7');
    await page.getByLabel(/Other descriptors of the request/).fill('endpoint=/search');
    await page.getByRole('button', { name: 'Yes, refund this request' }).click();
    await page.getByText('Request checkout-7 is refunded.').waitFor();
    await verdictHas('2 of 5 left under per-user/hour');
    expect(await seriousFindings(page)).toEqual([]);
  });

  it('is found by one of its values, with every other key that has this value', async () => {
    await goTo(page, 'Keys');
    await find('mallory');
    const results = page.getByRole('region', { name: 'Keys with mallory' });
    await results.getByRole('row').filter({ hasText: '2 of 5 left under per-user/hour' }).waitFor();
    const keys = await results.getByRole('link').allTextContents();
    expect(keys.toSorted()).toEqual(['customer=mallory', 'endpoint=/search,user=mallory', 'user=mallory']);
    expect(await isFineEverywhere()).toEqual([]);
    await find('nobody-yet');
    await page
      .getByRole('row')
      .filter({
        has: page.getByRole('link', { name: 'user=nobody-yet', exact: true }),
        hasText: 'nothing counted',
      })
      .waitFor();
  });

  it('opens by the whole text of the key, and by its address', async () => {
    await find('endpoint=/search,user=mallory');
    await page.getByRole('heading', { name: 'endpoint=/search,user=mallory' }).waitFor();
    await verdictHas('left under searches/hour');
    expect(await page.evaluate('location.hash')).toBe('#/key/endpoint%3D%2Fsearch%2Cuser%3Dmallory');
    await page.reload();
    await verdictHas('left under searches/hour');
    await page.goBack();
    await page.getByRole('region', { name: 'Keys with nobody-yet' }).waitFor();
  });

  it('is reached from its customer, and leads back', async () => {
    await goTo(page, 'Customers');
    await page.getByLabel('Customer id').fill('mallory');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'What is counted for customer=mallory' }).click();
    await verdictHas('499 of 500 left under per-customer/hour');
    await page.getByRole('link', { name: 'Tier and limits of customer mallory' }).click();
    await page.getByRole('heading', { level: 2, name: 'mallory' }).waitFor();
    expect(await page.evaluate('location.hash')).toBe('#/customers/mallory');
  });

  it('sends requests only to its node, and obeys its content security policy', () => {
    expect(watched.outside).toEqual([]);
    expect(watched.complaints).toEqual([]);
  });
});
