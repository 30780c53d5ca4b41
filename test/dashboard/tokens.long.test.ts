/** Tests the dashboard in a browser with a closed cluster, with a read token and an admin token. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, TestCluster } from '../cluster/harness.ts';
import { CHROMIUM, goTo, openBrowser, openPage, seriousFindings, type WatchedPage } from './browser.ts';

const RULE = { id: 'default', limit: 20, windowMillis: 60_000, clock: 'cluster' } as const;
const DOCUMENT = `rules:
  - { id: free, match: { tier: free }, key: customer, group: tier, windows: { limit: 5, per: minute } }
  - { id: per-customer, key: customer, group: tier, windows: { limit: 50, per: minute } }
`;

let cluster: TestCluster;
let browser: Browser;
let watched: WatchedPage;
let page: Page;
let admin = '';
let reader = '';

/** Creates a token with the admin's token. */
async function made(role: string): Promise<string> {
  return eventually(`a token of role ${role}`, async () => {
    const response = await fetch(`http://127.0.0.1:${cluster.port(1)}/v1/tokens`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(admin !== '' && { authorization: `Bearer ${admin}` }),
      },
      body: JSON.stringify({ role, name: role }),
    });
    const { token } = (await response.json()) as { token?: string };
    return token;
  });
}

async function signIn(token: string): Promise<void> {
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Applies rules as another admin, at another node. */
async function changeRules(document: string): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${cluster.port(2)}/v1/rules`, {
    method: 'PUT',
    headers: { 'content-type': 'application/yaml', authorization: `Bearer ${admin}` },
    body: document,
  });
  expect(response.status).toBe(200);
}

describe.skipIf(CHROMIUM === undefined)('the dashboard of a closed cluster', () => {
  beforeAll(async () => {
    cluster = await TestCluster.start({ rules: [RULE], partitions: 4 });
    admin = await made('admin');
    reader = await made('read');
    browser = await openBrowser();
    watched = await openPage(browser, `http://127.0.0.1:${cluster.port(1)}`, true);
    ({ page } = watched);
  });
  afterAll(async () => {
    await browser.close();
    await cluster.stop();
  });

  it('asks for a token, and refuses a wrong one', async () => {
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await signIn('qt_wrong');
    await page.getByRole('alert').filter({ hasText: 'This token is not accepted' }).waitFor();
  });

  it('shows everything to a token of role read, and allows it no change', async () => {
    await signIn(reader);
    await page.getByText('read token (view only)').waitFor();
    await page.locator('#summary', { hasText: 'All 3 nodes are up' }).waitFor();
    await goTo(page, 'Rules');
    await page.getByRole('button', { name: 'Edit the rules' }).click();
    await page.getByText('per-user is added').waitFor();
    expect(await page.getByRole('button', { name: 'Apply this difference' }).isDisabled()).toBe(true);
    await goTo(page, 'Customers');
    await page.getByLabel('Customer id').fill('acme');
    await page.keyboard.press('Enter');
    await page.getByText('there is no record of this customer').first().waitFor();
    expect(await page.getByRole('button', { name: 'Save' }).count()).toBe(0);
  });

  it('keeps the token in this tab alone', async () => {
    expect(await page.evaluate('localStorage.length')).toBe(0);
    expect(await page.evaluate('document.cookie')).toBe('');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await page.evaluate('sessionStorage.getItem("quorate-token")')).toBeNull();
  });

  it('lets an admin apply rules after showing mistakes and the difference', async () => {
    await signIn(admin);
    await page.getByText('admin token').waitFor();
    await goTo(page, 'Rules');
    await page.getByRole('button', { name: 'Edit the rules' }).click();
    const text = page.getByLabel('Document of rules');
    await text.fill(DOCUMENT.replace('limit: 5', 'limit: five'));
    await page.getByRole('button', { name: /line 2/ }).click();
    expect(await page.evaluate('document.activeElement.selectionStart')).toBe(DOCUMENT.indexOf('5, per'));
    await text.fill(DOCUMENT);
    await page.getByText('free is added').waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole('button', { name: 'Apply this difference' }).click();
    await page.getByText(/Version \d+ is in force/).waitFor();
    await page.getByRole('rowheader', { name: 'per-customer' }).waitFor();
    await page.getByText(/No rule differs/).waitFor();
    expect(await page.getByRole('button', { name: 'Apply this difference' }).isDisabled()).toBe(true);
  });

  it('reverts no change of another admin without a confirmation', async () => {
    const text = page.getByLabel('Document of rules');
    const apply = page.getByRole('button', { name: 'Apply this difference' });
    const mine = DOCUMENT.replace('limit: 50', 'limit: 60');
    await text.fill(mine);
    await page.getByText('per-customer becomes looser').waitFor();
    await changeRules(DOCUMENT.replace('limit: 5,', 'limit: 7,'));
    await page.getByText(/Somebody else applied version \d+/).waitFor();
    await page
      .getByText(/free (?:becomes|limits)/)
      .first()
      .waitFor();
    expect(await apply.isDisabled()).toBe(true);
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole('button', { name: /Start over from version/ }).click();
    await page.getByText(/No rule differs/).waitFor();
    expect(await text.inputValue()).toMatch(/limit: 7[^]*limit: 50/);
    await text.fill(mine);
    await page.getByText('per-customer becomes looser').waitFor();
    await changeRules(DOCUMENT.replace('limit: 5,', 'limit: 8,'));
    await page.getByRole('button', { name: 'Keep this text, and take that change back' }).click();
    await page.getByText(/free (?:becomes|limits)/).waitFor();
    await apply.click();
    await page.getByText(/Version \d+ is in force/).waitFor();
    await page.getByText(/No rule differs/).waitFor();
    expect(await page.getByText(/Somebody else applied/).count()).toBe(0);
  });

  it('lets an admin change a customer, unless another admin did meanwhile', async () => {
    await goTo(page, 'Customers');
    await page.getByLabel('Customer id').fill('acme');
    await page.keyboard.press('Enter');
    await page.getByLabel('Tier').fill('free');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Done: every node applies it.').waitFor();
    await page.getByRole('definition').filter({ hasText: 'free' }).waitFor();
    const response = await fetch(`http://127.0.0.1:${cluster.port(2)}/v1/customers/acme`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${admin}` },
      body: '{"tier":"free","blocked":true}',
    });
    expect(response.status).toBe(200);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText(/has changed since it was read/).waitFor();
    await page.getByText('yes: everything is denied').waitFor();
    expect(await seriousFindings(page)).toEqual([]);
  });

  it('shows nothing once its token is revoked', async () => {
    const id = admin.split('_')[1] ?? '';
    const other = await made('admin');
    const response = await fetch(`http://127.0.0.1:${cluster.port(1)}/v1/tokens/${id}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${other}` },
    });
    expect(response.status).toBe(200);
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  });

  it('sends requests only to its node, and obeys its content security policy', () => {
    expect(watched.outside).toEqual([]);
    expect(watched.complaints).toEqual([]);
  });
});
