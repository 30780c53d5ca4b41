/**
 * Tests which cluster a command asks (the one named by options, otherwise the one of ./data) and which CA it trusts.
 */
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clusterOf } from '../../src/cli/asked-cluster.ts';
import { EXIT_UNAVAILABLE, EXIT_USAGE } from '../../src/cli/explain-error.ts';
import { freePorts, temporaryDirectory, WAIT_MILLIS_MAX } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';
import { Authority } from '../tls/authority.ts';
import { decided, type Ended, ended, ran, ROOT } from './command.ts';
import { walked } from './walk.ts';

const RULE = { id: 'default', limit: 3, windowMillis: 600_000, clock: 'cluster' } as const;
const PATIENCE = { timeout: WAIT_MILLIS_MAX };
/** Arguments that a command needs. Commands not listed need none. */
const MORE: Readonly<Record<string, readonly string[]>> = {
  'quorate allow': ['ada'],
  'quorate backup': ['--out', 'backup'],
  'quorate customers delete': ['acme'],
  'quorate customers get': ['acme'],
  'quorate customers put': ['acme', '--tier', 'pro'],
  'quorate drain': ['2'],
  'quorate nodes add': ['4', '--http', '127.0.0.1:1', '--peer', '127.0.0.1:2'],
  'quorate nodes label': ['1', '--zone', 'a'],
  'quorate nodes remove': ['3'],
  'quorate rules apply': ['rules.yaml'],
  'quorate rules diff': ['rules.yaml'],
  'quorate tokens create': ['--role', 'read'],
  'quorate tokens revoke': ['abcdefgh'],
  'quorate users block': ['ada'],
  'quorate users get': ['ada'],
  'quorate users refund': ['ada', '--request-id', 'a'],
  'quorate users reset': ['ada'],
  'quorate users set': ['ada', '--rule', 'default', '--used', '1'],
  'quorate users unblock': ['ada'],
};
/** Commands that also read a directory. */
const OTHERS = ['quorate doctor', 'quorate recover'];
const ASKING = walked().filter(
  ({ path, command }) => !OTHERS.includes(path) && command.options.some(({ long }) => long === '--node'),
);

let cluster: InProcessCluster;
let cwd: string;
let closed: string;
beforeAll(async () => {
  cluster = await InProcessCluster.create({ rules: [RULE], partitions: 2 });
  await cluster.startAll();
  cwd = join(cluster.directory, 'elsewhere');
  await mkdir(cwd);
  await symlink(cluster.directory, join(cwd, 'data'));
  await writeFile(
    join(cwd, 'rules.yaml'),
    'rules:\n  - id: per-user\n    key: [user]\n    windows: [{ limit: 9, per: minute }]\n',
  );
  closed = `127.0.0.1:${(await freePorts(1))[0] ?? 0}`;
});
afterAll(async () => cluster.stop());

function urlOf(id: number): string {
  return `http://127.0.0.1:${cluster.config.nodes.find((node) => node.id === id)?.http.port ?? 0}`;
}

async function versionOfRules(): Promise<unknown> {
  const response = await fetch(`${urlOf(1)}/v1/rules`);
  return ((await response.json()) as { version?: unknown }).version;
}

describe.each(ASKING)('$path', ({ path }) => {
  const words = [...path.split(' ').slice(1), ...(MORE[path] ?? [])];

  it('asks the named node, and not the running cluster of ./data', async () => {
    const { code, said } = await ran([...words, '--node', closed], cwd);
    expect([code, said]).toEqual([EXIT_UNAVAILABLE, expect.stringContaining(closed)]);
  });

  it('asks the cluster of the named directory, which must have one', async () => {
    const { code, said } = await ran([...words, '--data', 'none'], cwd);
    expect(code).toBe(EXIT_USAGE);
    expect(said).toMatch(/^quorate: --data none holds no cluster\.json.*--node/);
  });

  it('accepts one cluster, not two', async () => {
    const { code, said } = await ran([...words, '--node', closed, '--data', 'data'], cwd);
    expect(code).toBe(EXIT_USAGE);
    expect(said).toMatch(/'--node <host:port>' cannot be used with option '--data <dir>'/);
  });
});

describe('without --node and --data', () => {
  it('a command asks the cluster of ./data, at a node that answers', async () => {
    await expect.poll(versionOfRules, PATIENCE).toBe(1);
    const shown = await decided(() => ran(['users', 'get', 'ada'], cwd));
    expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining('default') as string });
    await cluster.stopNode(1);
    expect(await decided(() => ran(['users', 'get', 'ada'], cwd))).toMatchObject({ code: 0 });
    const rules = await decided(() => ran(['rules', 'show'], cwd));
    expect(rules.stdout).toContain(`# version 1 of the rules, as ${urlOf(2)} says`);
    await cluster.startNode(1);
    await cluster.ready();
  });

  it('a command names a broken cluster.json, and asks no other cluster', async () => {
    const broken = join(cluster.directory, 'broken');
    await mkdir(join(broken, 'data'), { recursive: true });
    await writeFile(join(broken, 'data', 'cluster.json'), '{ broken');
    const { code, said } = await ran(['users', 'get', 'ada'], broken);
    expect([code, said]).toEqual([EXIT_USAGE, expect.stringContaining('data/cluster.json is not JSON')]);
  });

  it('a command asks 127.0.0.1:8101 if there is no ./data', async () => {
    const before = process.cwd();
    process.chdir(join(cluster.directory, 'node-1'));
    try {
      expect(await clusterOf({})).toMatchObject({ urls: ['http://127.0.0.1:8101'] });
    } finally {
      process.chdir(before);
    }
  });

  it('a command names every node that did not answer', async () => {
    const lost = await temporaryDirectory();
    await ran(['init', '--base-port', '40100'], lost);
    const { code, said } = await ran(['users', 'get', 'ada'], lost);
    expect(code).toBe(EXIT_UNAVAILABLE);
    expect(said).toMatch(
      /^quorate: no node of the cluster in \.\/data answers \(http:.*40101, http:.*40102, http:.*40103: ECONNREFUSED\): .*--node$/,
    );
  });
});

describe('a node that speaks TLS', () => {
  let authority: Authority;
  let server: Server;
  let node: string;
  let directory: string;
  beforeAll(async () => {
    authority = await Authority.make('c');
    const { cert, key } = await authority.issue({ clusterId: 'c', nodeId: 1 });
    server = createServer({ cert: await readFile(cert), key: await readFile(key) }, (_, response) => {
      response.end(JSON.stringify({ limits: [], decided: {} }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    node = `127.0.0.1:${port}`;
    directory = await temporaryDirectory();
    await ran(['init', '--nodes', '1', '--tls', '--base-port', String(port - 1)], directory);
    await writeFile(join(directory, 'data', 'certs', 'ca.crt'), await readFile(authority.caFile));
  });
  afterAll(async () => {
    server.close();
    await authority.remove();
  });

  /** Runs the command as a separate process, because a process keeps the CAs it trusts. */
  async function asked(...options: readonly string[]): Promise<Ended> {
    return ended('quorate', ['users', 'get', 'ada', ...options], directory);
  }

  it('makes a command with plain HTTP name the missing option', async () => {
    for (const named of [node, `http://${node}`])
      expect(await asked('--node', named)).toEqual({
        code: EXIT_USAGE,
        said: `quorate: http://${node} speaks TLS, not plain HTTP: give the CA of its cluster with --ca, such as certs/ca.crt in its directory`,
        stdout: '',
      });
    expect(await ran(['status', '--node', node], ROOT)).toMatchObject({
      code: EXIT_USAGE,
      said: expect.stringContaining('speaks TLS, not plain HTTP') as string,
    });
  });

  it('is trusted with its CA, which may also come from cluster.json', async () => {
    expect(await asked('--node', node, '--ca', authority.caFile)).toMatchObject({ code: 0 });
    expect(await asked()).toMatchObject({ code: 0 });
    expect(await asked('--node', `https://${node}`)).toMatchObject({
      code: EXIT_USAGE,
      said: expect.stringMatching(/is not trusted .*--ca/) as string,
    });
  });
});
