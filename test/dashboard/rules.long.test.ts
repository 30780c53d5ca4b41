/**
 * Tests the rules view in a browser: decisions of each rule, shadow rules, and an editor that loses no text and no
 * change.
 */
import type { Browser, Locator, Page } from 'playwright-core';
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
const DOCUMENT = `# Owned by the payments team. Ask before you raise anything.
rules:
  - id: tighter # a trial until March
    key: user
    group: trial
    windows: { limit: 2, per: hour }
    shadow: true

  - id: per-customer
    key: customer
    windows: { limit: 500, per: hour }

  - id: per-user # what the contract says
    key: user
    windows: { limit: 5, per: hour }
`;
const PHONE = { width: 360, height: 740 };
const DESKTOP = { width: 1_280, height: 800 };

let closed: ClosedCluster;
let browser: Browser;
let watched: WatchedPage;
let page: Page;
let text: Locator;
let apply: Locator;

async function documentInForce(): Promise<unknown> {
  const { body } = await closed.ask('GET', '/v1/rules');
  return (body as { readonly document?: string }).document;
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

describe.skipIf(CHROMIUM === undefined)('the rules', () => {
  beforeAll(async () => {
    closed = new ClosedCluster(await TestCluster.start({ rules: [RULE], partitions: 4 }));
    const admin = await closed.token('admin');
    await closed.changeRules(DOCUMENT);
    await eventually('mallory is denied', async () =>
      (await closed.allow({ user: 'mallory' })) === 429 ? true : undefined,
    );
    await closed.allowOften(3, { user: 'ada' });
    browser = await openBrowser();
    watched = await openPage(browser, `http://127.0.0.1:${closed.cluster.port(1)}`);
    ({ page } = watched);
    text = page.getByLabel('Document of rules');
    apply = page.getByRole('button', { name: 'Apply this difference' });
    await page.getByLabel('Token').fill(admin);
    await page.keyboard.press('Enter');
    await page.getByText('admin token').waitFor();
  });
  afterAll(async () => {
    await browser.close();
    await closed.cluster.stop();
  });

  it('have totals and the key nearest to the limit, and a shadow rule stands right below the enforced one', async () => {
    await goTo(page, 'Rules');
    const rows = page.getByRole('row').filter({ has: page.getByRole('rowheader') });
    await page.getByRole('row', { name: /per-user.*user=mallory 0 of 5 left/ }).waitFor();
    const names = (await rows.allTextContents()).map((row) => /^[a-zA-Z -]+/.exec(row)?.[0]);
    expect(names.slice(0, 3)).toEqual(['Counts by user', 'per-user enforced', 'tighter shadow']);
    const enforced = await page
      .getByRole('row', { name: /^per-user/ })
      .getByRole('cell')
      .allTextContents();
    expect(enforced.slice(1, 3)).toEqual([expect.stringMatching(/^\d+ \(\d+ %\)$/), '–']);
    const shadow = await page
      .getByRole('row', { name: /^tighter/ })
      .getByRole('cell')
      .allTextContents();
    expect(shadow.slice(0, 3)).toEqual(['–', '–', expect.stringMatching(/^4 \(\d+ %\)$/)]);
    expect(await isFineEverywhere()).toEqual([]);
    await page
      .getByRole('row', { name: /^per-user/ })
      .getByRole('link', { name: 'user=mallory' })
      .click();
    await page.locator('#verdict', { hasText: 'Denied by per-user/hour' }).waitFor();
    await page.goBack();
  });

  it('are edited in the text of their author, with line numbers', async () => {
    await page.getByRole('button', { name: 'Edit the rules' }).click();
    expect(await text.inputValue()).toBe(DOCUMENT);
    expect(await page.locator('.numbers').textContent()).toMatch(/^1\n2\n3\n/);
    await page.getByText('No rule differs').waitFor();
    expect(await apply.isDisabled()).toBe(true);
  });

  it('mark the line of a mistake, and cannot be applied', async () => {
    await text.fill(DOCUMENT.replace('limit: 500', 'limit: many'));
    await page.getByRole('button', { name: 'line 11, column 23' }).waitFor();
    expect(await page.locator('.numbers mark').textContent()).toBe('✗ 11\n');
    expect(await page.locator('.marks mark').textContent()).toContain('limit: many');
    expect(await text.getAttribute('aria-invalid')).toBe('true');
    expect(await apply.isDisabled()).toBe(true);
    expect(await isFineEverywhere()).toEqual([]);
  });

  it('show the difference with comments before they are applied, and keep the text afterwards', async () => {
    const mine = DOCUMENT.replace('limit: 500', 'limit: 600').replace('until March', 'until April');
    await text.fill(mine);
    await page.getByText('per-customer becomes looser').waitFor();
    const diff = page.getByRole('list', { name: 'Lines that differ' });
    expect(await diff.locator('.removed code').allTextContents()).toEqual([
      '  - id: tighter # a trial until March',
      '    windows: { limit: 500, per: hour }',
    ]);
    expect(await diff.locator('.added code').allTextContents()).toEqual([
      '  - id: tighter # a trial until April',
      '    windows: { limit: 600, per: hour }',
    ]);
    expect(await isFineEverywhere()).toEqual([]);
    await apply.click();
    await page.getByText(/Version \d+ is in force/).waitFor();
    expect(await documentInForce()).toBe(mine);
    await text.fill(mine.replace('Ask before', 'Ask them before'));
    await page.getByText('Ask them before').last().waitFor();
    await apply.click();
    await eventually('a comment alone is applied', async () =>
      String(await documentInForce()).includes('Ask them before') ? true : undefined,
    );
    await page.getByText(/Version \d+ is in force/).waitFor();
  });

  it('ask what to do with the change of another admin, and merge it with the edited text', async () => {
    const before = await text.inputValue();
    await text.fill(before.replace('limit: 5,', 'limit: 6,'));
    await page.getByText('per-user becomes looser').waitFor();
    await closed.changeRules(before.replace('until April', 'until May').replace('limit: 2,', 'limit: 3,'));
    const question = page.getByRole('alert').filter({ hasText: 'Somebody else applied version' });
    await question.getByText('tighter becomes looser').waitFor();
    expect(await apply.isDisabled()).toBe(true);
    expect(await isFineEverywhere()).toEqual([]);
    await question.getByRole('button', { name: 'Take that change into this text' }).click();
    await page.getByText('1 change against version').waitFor();
    await apply.click();
    await page.getByText(/Version \d+ is in force/).waitFor();
    const applied = String(await documentInForce());
    expect(applied).toContain('limit: 3,');
    expect(applied).toContain('limit: 6,');
    expect(applied).toContain('# a trial until May');
  });

  it('are not applied over a change that the page does not know yet', async () => {
    const before = await text.inputValue();
    await text.fill(before.replace('limit: 6,', 'limit: 9,'));
    await page.getByText('per-user becomes looser').waitFor();
    // Delays all other reports to the page.
    await page.route('**/v1/rules', async (route) => {
      if (route.request().method() === 'PUT')
        await closed.changeRules(before.replace('limit: 6,', 'limit: 7,'));
      await route.continue();
    });
    await apply.click();
    await page.getByText(/Somebody else applied version/).waitFor();
    await page.unroute('**/v1/rules');
    expect(String(await documentInForce())).toContain('limit: 7,');
    await page.getByText(/Both changed the same lines/).waitFor();
    expect(await page.getByRole('button', { name: 'Take that change into this text' }).count()).toBe(0);
  });

  it('send requests only to their node, and obey its content security policy', () => {
    expect(watched.outside).toEqual([]);
    expect(watched.complaints).toEqual([]);
  });
});
