/** The files of the dashboard as `npm run setup` built them. */
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { dashboardFiles } from '../../src/http/dashboard-files.ts';
import { Listener } from './fixtures.ts';

/** The bytes a browser loads before anything is shown, compressed. */
const BYTES_MAX = 150 << 10;

let listener = new Listener();

afterEach(async () => {
  await listener.app.close();
  listener = new Listener();
});

async function get(
  url: string,
  headers: Record<string, string> = {},
): Promise<Awaited<ReturnType<typeof listener.app.inject>>> {
  return listener.app.inject({ method: 'GET', url, headers: { host: '127.0.0.1', ...headers } });
}

describe('the dashboard', () => {
  it('is served without a token, also in a closed cluster, and may load from its node only', async () => {
    listener.access.close();
    const page = await get('/');
    expect(page.statusCode).toBe(200);
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    const policy = String(page.headers['content-security-policy']);
    expect(policy).toContain("default-src 'self'");
    expect(policy).not.toMatch(/unsafe|data:|https?:/);
    expect(page.body).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=|https?:\/\//);
  });

  it('names existing files, with their types, which may be cached forever', async () => {
    const page = await get('/');
    const named = [...page.body.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path = '']) => path);
    expect(named.map((path) => path.replace(/.*\./, '')).toSorted()).toEqual(['css', 'js', 'svg']);
    for (const path of named) {
      const file = await get(path);
      expect([path, file.statusCode]).toEqual([path, 200]);
      expect(file.headers['x-content-type-options']).toBe('nosniff');
      const isHashed = !path.endsWith('.svg');
      expect(String(file.headers['cache-control']).includes('immutable')).toBe(isHashed);
    }
    expect(page.headers['cache-control']).toBe('no-cache');
  });

  it('has an ETag, and is compressed for clients that accept it', async () => {
    const page = await get('/');
    const same = await get('/', { 'if-none-match': String(page.headers['etag']) });
    expect([same.statusCode, same.body]).toEqual([304, '']);
    const small = await get('/', { 'accept-encoding': 'gzip, br' });
    expect(small.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(small.rawPayload).toString()).toBe(page.body);
  });

  it('is small', async () => {
    const files = [...(await dashboardFiles()).values()];
    const sent = files.reduce((sum, { bytes }) => sum + gzipSync(bytes).length, 0);
    expect(sent).toBeGreaterThan(10 << 10);
    expect(sent).toBeLessThan(BYTES_MAX);
  });

  it.each([
    '/dashboard/nothing.js',
    '/dashboard/',
    '/dashboard/..%2f..%2fpackage.json',
    '/dashboard/../../package.json',
  ])('has no file %s', async (path) => {
    expect((await get(path)).statusCode).toBe(404);
  });

  it('accepts no other method', async () => {
    const answer = await listener.app.inject({
      method: 'POST',
      url: '/dashboard/a.js',
      headers: { host: 'localhost' },
    });
    expect([answer.statusCode, answer.headers['allow']]).toEqual([405, 'GET, HEAD']);
  });
});
