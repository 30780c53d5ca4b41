/**
 * A node serves the documentation that fits its version, offline: every page, and links between them that lead
 * somewhere.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Listener } from '../http/fixtures.ts';
import { ROOT } from '../package/packed.ts';

const PAGES = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' }).filter((path) =>
  path.endsWith('.md'),
);

let listener: Listener;

beforeAll(() => {
  listener = new Listener();
});
afterAll(() => listener.app.close());

async function pageAt(path: string): Promise<{ readonly status: number; readonly body: string }> {
  const { statusCode, body } = await listener.app.inject({ method: 'GET', url: `/docs/${path}` });
  return { status: statusCode, body };
}

describe('the documentation that a node serves', () => {
  it('begins with the index', async () => {
    const { statusCode, headers } = await listener.app.inject({ method: 'GET', url: '/docs' });
    expect([statusCode, headers['location']]).toEqual([302, '/docs/README.md']);
  });

  it.each(PAGES)('has the page %s, which loads and runs nothing', async (path) => {
    const { status, body } = await pageAt(path);
    expect(status).toBe(200);
    const [, title = ''] = /^# (.+)$/m.exec(readFileSync(join(ROOT, 'docs', path), 'utf8')) ?? [];
    expect(body).toContain(
      `<title>${title.replaceAll(/[&<>"'`]/g, (c) => (c === '`' ? c : `&#${c.charCodeAt(0)};`))}`,
    );
    expect(body).not.toMatch(/<(?:script|link|img|iframe|object)|\son\w+=|@import|src=/);
  });

  it.each(PAGES)('has no dead link in %s', async (path) => {
    const { body } = await pageAt(path);
    const dead: string[] = [];
    for (const [, href = ''] of body.matchAll(/href="([^"]+)"/g)) {
      if (/^https?:/.test(href) || href === '/docs') continue;
      const [file = '', anchor] = href.split('#');
      const target = file === '' ? path : posix.join(posix.dirname(path), file);
      const there = await pageAt(target);
      const hasAnchor = anchor === undefined || there.body.includes(`id="${anchor}"`);
      if (there.status !== 200 || !hasAnchor) dead.push(href);
    }
    expect(dead).toEqual([]);
  });

  it('serves no other file', async () => {
    for (const path of ['openapi.md', '../package.json', '%2e%2e/package.json', 'openapi.json/'])
      expect((await pageAt(path)).status).toBe(404);
  });

  it('is served with its security policy, also while the API is closed', async () => {
    listener.access.close();
    const { statusCode, headers } = await listener.app.inject({ method: 'GET', url: '/docs/README.md' });
    listener.access.now = 'open';
    expect(statusCode).toBe(200);
    expect(headers['content-security-policy']).toContain("default-src 'none'");
  });
});
