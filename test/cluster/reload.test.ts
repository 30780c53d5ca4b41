/** Tests `kill -HUP`: which settings of cluster.json a running node adopts, which it does not, and what it logs. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually, TestCluster } from './harness.ts';

const RULE = { id: 'default', limit: 1_000, windowMillis: 60_000, clock: 'request' } as const;
const IN_FORCE = 'a setting changed: in force from now on';
const AT_START = 'a setting changed: in force after a restart of this node';
const NOTHING = 'the configuration was read again: nothing changed';
const NO_USE = 'the configuration is invalid: nothing changed';

type Line = Readonly<Record<string, unknown>>;

let cluster: TestCluster;
beforeEach(async () => {
  cluster = await TestCluster.create({ rules: [RULE], nodes: 1, partitions: 1 });
});
afterEach(async () => {
  await cluster.stop();
});

async function start(...options: string[]): Promise<void> {
  cluster.startNode(1, (command) => [...command, ...options]);
  await cluster.ready();
}

function url(path: string): string {
  return `http://127.0.0.1:${cluster.port(1)}${path}`;
}

function lines(): Line[] {
  const text = readFileSync(join(cluster.directory, 'logs', 'node-1.log'), 'utf8');
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
}

/** Log lines about this file after the signal, up to the first line of this kind. */
async function hangUp(config: object | string, until: string): Promise<Line[]> {
  const text = typeof config === 'string' ? config : JSON.stringify(config);
  writeFileSync(join(cluster.directory, 'cluster.json'), text);
  const before = lines().length;
  cluster.signal(1, 'SIGHUP');
  return eventually(`the log says: ${until}`, () => {
    const said = lines().slice(before);
    return said.some(({ msg }) => msg === until) ? said : undefined;
  });
}

function of(said: readonly Line[], msg: string): unknown[] {
  return said.filter((line) => line['msg'] === msg).map(({ field }) => field);
}

async function allow(headers: Record<string, string>): Promise<Response> {
  return eventually('the node decides', async () => {
    const response = await fetch(url('/v1/allow'), { method: 'POST', headers });
    return response.status === 503 ? undefined : response;
  });
}

/** The request that nginx sends for a client. */
async function forwarded(): Promise<number> {
  const headers = {
    'x-forwarded-for': '10.1.2.3',
    'x-forwarded-method': 'GET',
    'x-forwarded-uri': '/',
  };
  return (await fetch(url('/v1/forward-auth'), { headers })).status;
}

async function metric(name: string): Promise<number> {
  const text = await (await fetch(url('/metrics'))).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
}

it('adopts the settings that need no restart, and names the others', async () => {
  await start();
  expect((await allow({ 'x-account': 'ada' })).status).toBe(400);
  expect(await forwarded()).toBe(400);
  const { config } = cluster;
  const changed = {
    ...config,
    freeFloorBytes: 1_024,
    stateBytesMax: 1_000_000,
    http: {
      rateLimitHeaders: ['draft6'],
      userHeader: 'X-Account',
      trustedProxies: ['127.0.0.1'],
      keepAliveMillis: 7_000,
    },
    timing: { ...config.timing, electionMillis: 5_000 },
    leaders: 'gather',
  };
  const said = await hangUp(changed, AT_START);
  expect(of(said, IN_FORCE)).toEqual([
    'http.rateLimitHeaders',
    'http.userHeader',
    'http.trustedProxies',
    'http.keepAliveMillis',
    'freeFloorBytes',
    'stateBytesMax',
  ]);
  expect(said.find(({ field }) => field === 'http.userHeader')).toMatchObject({ to: 'x-account' });
  expect(said.find(({ field }) => field === 'freeFloorBytes')).toMatchObject({
    from: config.freeFloorBytes,
    to: 1_024,
  });
  await eventually('all pending changes are logged', () =>
    lines().some(({ field }) => field === 'leaders') ? true : undefined,
  );
  expect(of(lines(), AT_START)).toEqual(['timing.electionMillis', 'leaders']);

  const granted = await allow({ 'x-account': 'ada' });
  expect(granted.status).toBe(200);
  expect(granted.headers.get('ratelimit-limit')).toBe('1000');
  expect(granted.headers.has('x-ratelimit-limit')).toBe(false);
  expect(granted.headers.get('keep-alive')).toBe('timeout=7');
  expect(await forwarded()).toBe(200);
  expect(await metric('quorate_disk_free_floor_bytes')).toBe(1_024);
  expect(await metric('quorate_state_bytes_max')).toBe(1_000_000);

  // Pending changes are logged again, and those in force are not.
  expect(of(await hangUp(changed, AT_START), IN_FORCE)).toEqual([]);
  await hangUp(config, IN_FORCE);
  await eventually('the old header identifies nobody any more', async () =>
    (await allow({ 'x-account': 'ada' })).status === 400 ? true : undefined,
  );
  expect(await forwarded()).toBe(400);
  await hangUp(config, NOTHING);
  expect(of(lines(), AT_START)).toHaveLength(4);
});

it('changes nothing if the file is wrong, and names the field', async () => {
  await start();
  const { config } = cluster;
  const path = join(cluster.directory, 'cluster.json');
  const http = { rateLimitHeaders: [], userHeader: 'x-account' };
  for (const [wrong, field] of [
    ['{', path],
    [{ ...config, http: { ...http, trustedProxies: ['everybody'] } }, `${path}: http.trustedProxies[0]`],
    [{ ...config, http: { ...http, userHeadr: 'x' } }, `${path}: http.userHeadr`],
    [{ ...config, http, logLevel: 'loud' }, `${path}: logLevel`],
    [{ ...config, http, partitions: 2 }, 'partitions'],
    [{ ...config, http, nodes: config.nodes.map((node) => ({ ...node, id: 2 })) }, '<id>'],
  ] as const) {
    const said = await hangUp(wrong, NO_USE);
    expect(of(said, NO_USE)).toEqual([field]);
    expect(of(said, IN_FORCE)).toEqual([]);
  }
  expect((await allow({ 'x-account': 'ada' })).status).toBe(400);
  expect(of(await hangUp(config, NOTHING), NOTHING)).toHaveLength(1);
});

it('uses the log level of the file', async () => {
  await start();
  const { config } = cluster;
  const quiet = { ...config, logLevel: 'error' };
  expect(of(await hangUp(quiet, IN_FORCE), IN_FORCE)).toEqual(['logLevel']);
  const before = lines().length;
  await hangUp('{', NO_USE);
  writeFileSync(join(cluster.directory, 'cluster.json'), JSON.stringify({ ...quiet, freeFloorBytes: 1_024 }));
  cluster.signal(1, 'SIGHUP');
  await eventually('the node adopted the level', async () =>
    (await metric('quorate_disk_free_floor_bytes')) === 1_024 ? true : undefined,
  );
  // Only the lines of the adopted level are logged.
  expect(lines().slice(before)).toMatchObject([{ msg: NO_USE }]);
  const louder = await hangUp({ ...quiet, logLevel: 'info', freeFloorBytes: 2_048 }, IN_FORCE);
  expect(louder[0]).toMatchObject({ field: 'logLevel', from: 'error', to: 'info' });
});

it('keeps the log level of the command line if the file changes later', async () => {
  await start('--log-level', 'warn');
  expect(lines().filter(({ level }) => Number(level) < 40)).toEqual([]);
  const said = await hangUp(
    { ...cluster.config, logLevel: 'trace' },
    'logLevel: the level that the node was started with stays in force',
  );
  expect(of(said, IN_FORCE)).toEqual(['logLevel']);
  await hangUp({ ...cluster.config, logLevel: 'trace' }, NOTHING);
  expect(lines().filter(({ level }) => Number(level) < 40)).toEqual([]);
});
