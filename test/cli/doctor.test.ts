/** Tests which problems `quorate doctor` finds and how it reports them, and that it changes nothing. */
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { examine } from '../../src/cli/doctor-command.ts';
import { lineOf } from '../../src/cli/doctor-config.ts';
import { mountFindings } from '../../src/cli/doctor-node.ts';
import type { Finding } from '../../src/cli/finding.ts';
import { createCluster, nodeDirectory } from '../../src/config/cluster-directory.ts';
import type { ClusterConfig } from '../../src/config/config.ts';
import { OWN_TLS_SETTINGS } from '../../src/tls/certificate-files.ts';
import { eventually, temporaryDirectory, testConfig } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';

const RULE = { id: 'default', limit: 3, windowMillis: 600_000, clock: 'cluster' } as const;

interface Examined {
  readonly ok: boolean;
  readonly findings: readonly Finding[];
}

async function doctor(data: string, more: { id?: number } = {}): Promise<Examined> {
  const lines: string[] = [];
  const print = (line: string): void => void lines.push(line);
  const isSound = await examine({ data, ...more, version: 'unknown', json: true, print });
  const reported = JSON.parse(lines.join('\n')) as Examined;
  expect(reported.ok).toBe(isSound);
  for (const { result, action } of reported.findings) expect(action !== undefined).toBe(result !== 'ok');
  return reported;
}

function finding({ findings }: Examined, check: string): Finding | undefined {
  return findings.find((each) => each.check === check);
}

describe('the line of a mistake', () => {
  it('is the last one if the end of the file is missing', () => {
    expect(lineOf('{\n  "a": 1\n', 'x')).toBe(2);
  });

  const text =
    '{\n  "clusterId": "c",\n  "nodes": [\n    { "id": 1 },\n    {\n      "id": 2,\n      "http": { "port": -1 }\n    }\n  ]\n}\n';

  it.each([
    ['clusterId', 2],
    ['nodes', 3],
    ['nodes[0].id', 4],
    ['nodes[1].http.port', 7],
    ['nodes[1].peer', 5],
    ['timing.tickMillis', undefined],
  ])('is that of field %s, or of the object that lacks it', (field, line) => {
    expect(lineOf(text, field)).toBe(line);
  });

  it('is that of the first syntax error if the file is no JSON', () => {
    expect(lineOf(text.replace('"http": {', '"http": {{'), 'x')).toBe(7);
  });
});

describe('a cluster that does not run', () => {
  let directory: string;
  let config: ClusterConfig;
  beforeEach(async () => {
    directory = await temporaryDirectory();
    config = await testConfig({ rules: [RULE], nodes: 1, partitions: 2, resp: true });
    await createCluster(directory, config);
  });
  afterEach(async () => rm(directory, { recursive: true, force: true }));

  async function rewrite(change: (text: string) => string): Promise<void> {
    const path = join(directory, 'cluster.json');
    await writeFile(path, change(await readFile(path, 'utf8')));
  }

  /** Lists names, sizes and times of all files. */
  async function files(): Promise<string[]> {
    const names = await readdir(directory, { recursive: true });
    return Promise.all(
      names.sort().map(async (name) => {
        const { size, mtimeMs } = await stat(join(directory, name));
        return `${name} ${size} ${mtimeMs}`;
      }),
    );
  }

  it('is in order, and stays as it is', async () => {
    const before = await files();
    const reported = await doctor(directory);
    expect(reported.ok).toBe(true);
    expect(finding(reported, 'node 1: database')).toMatchObject({ result: 'ok' });
    for (const port of ['http', 'peer', 'resp'])
      expect(finding(reported, `node 1: ${port} port`)).toMatchObject({ result: 'ok' });
    expect(finding(reported, 'node 1: disk')?.found).toMatch(/free; the floor is 64.0 MiB$/);
    expect(finding(reported, 'node 1: who may ask')?.found).toContain(
      'open to every program on this machine',
    );
    expect(finding(reported, 'cluster')).toMatchObject({ result: 'warn' });
    expect(await files()).toEqual(before);
  });

  it('has a damaged database: doctor reports it, and does not mark the directory', async () => {
    await rm(join(nodeDirectory(directory, 1), 'CURRENT'));
    const before = await files();
    const reported = await doctor(directory);
    expect(reported.ok).toBe(false);
    expect(finding(reported, 'node 1: database')).toMatchObject({
      result: 'fail',
      found: expect.stringContaining("LevelDB's file CURRENT is missing") as string,
      action: expect.stringContaining('--replace 1') as string,
    });
    expect(await files()).toEqual(before);
  });

  it('has lost its database', async () => {
    await rm(nodeDirectory(directory, 1), { recursive: true });
    const reported = await doctor(directory, { id: 1 });
    expect(finding(reported, 'node 1: database')).toMatchObject({ result: 'fail' });
    expect(finding(await doctor(directory), 'nodes')).toMatchObject({ result: 'warn' });
    expect(finding(await doctor(directory, { id: 9 }), 'node 9')).toMatchObject({ result: 'fail' });
  });

  it('has a port that another program took', async () => {
    const { host, port } = config.nodes[0]?.peer ?? { host: '', port: 0 };
    const server = createServer();
    await new Promise<void>((resolve) => {
      server.listen({ host, port }, resolve);
    });
    const reported = await doctor(directory);
    server.close();
    expect(reported.ok).toBe(false);
    expect(finding(reported, 'node 1: peer port')).toMatchObject({ result: 'fail' });
    expect(finding(reported, 'node 1: http port')).toMatchObject({ result: 'ok' });
  });

  it.each([
    [
      'is no JSON',
      (text: string) => text.replace('"partitions"', '"partitions" 7'),
      /line \d+: .*is not JSON/,
    ],
    [
      'has a bad port',
      (text: string) => text.replace(/"port": \d+/, '"port": 70000'),
      /line \d+: .*http\.port/,
    ],
    [
      'has a port twice',
      (text: string) => text.replace(/"port": \d+/, '"port": 8101, "port": 8102'),
      /line \d+: .*http\.port must appear once/,
    ],
    ['has an unknown field', (text: string) => text.replace('{', '{ "partitons": 7,'), /partitons/],
  ])('has a cluster.json that %s: doctor reports the line', async (_, change, expected) => {
    await rewrite(change);
    const reported = await doctor(directory);
    expect(reported.ok).toBe(false);
    expect(finding(reported, 'cluster.json')).toMatchObject({ result: 'fail' });
    expect(finding(reported, 'cluster.json')?.found).toMatch(expected);
  });

  it('has no certificates, or is reachable without a token', async () => {
    const tls = JSON.stringify(OWN_TLS_SETTINGS);
    await rewrite((text) => text.replace('{', `{ "tls": ${tls},`).replaceAll('127.0.0.1', '0.0.0.0'));
    const reported = await doctor(directory);
    expect(finding(reported, 'node 1: certificate of tls')).toMatchObject({
      result: 'fail',
      found: expect.stringContaining('node-1.crt') as string,
    });
    expect(finding(reported, 'node 1: who may ask')).toMatchObject({
      result: 'fail',
      found: expect.stringContaining('needs a token of role admin') as string,
    });
  });

  it('is reported in sentences', async () => {
    await rm(join(nodeDirectory(directory, 1), 'CURRENT'));
    const lines: string[] = [];
    await examine({ data: directory, version: '1', print: (line) => void lines.push(line) });
    expect(lines.at(-2)).toMatch(
      /^FAIL {2}node 1: database: .*is damaged.* -> replace the node by one with a new id: `quorate nodes add --replace 1`$/,
    );
    // One line for each finding, with an action where one is needed.
    for (const line of lines.slice(0, -1)) {
      expect(line).toMatch(/^(ok {2}|WARN|FAIL) {2}[^\n]+$/);
      expect(line.includes(' -> ')).toBe(!line.startsWith('ok'));
    }
    expect(lines.at(-1)).toMatch(/^1 failed, \d+ need attention, \d+ ok$/);
  });
});

describe('a mount', () => {
  const mount = { point: '/data', type: 'ext4', source: '/dev/vdb' };

  it('with the option discard causes a warning that names it and says what to do', () => {
    const [reported] = mountFindings(2, { ...mount, options: ['rw', 'discard'] });
    expect(reported).toMatchObject({ check: 'node 2: mount', result: 'warn' });
    expect(reported?.found).toContain('/data (ext4 on /dev/vdb) is mounted with discard');
    expect(reported?.action).toContain('`mount -o remount,nodiscard /data`');
  });

  it('without it is in order', () => {
    expect(mountFindings(2, { ...mount, options: ['rw'] })).toMatchObject([{ result: 'ok' }]);
    expect(mountFindings(2, undefined)).toEqual([]);
  });
});

describe('a cluster that runs', () => {
  let cluster: InProcessCluster;
  beforeAll(async () => {
    cluster = await InProcessCluster.create({ rules: [RULE], nodes: 3, partitions: 2 });
    await cluster.startAll();
  });
  afterAll(async () => cluster.stop());

  it('is recognised, and its nodes are asked', async () => {
    const reported = await eventually('doctor finds no problem', async () => {
      const now = await doctor(cluster.directory);
      // A node may be too busy to answer in time.
      const areAsked = ['cluster', 'node 1: http port'].every(
        (check) => finding(now, check)?.result === 'ok',
      );
      const isClockKnown = finding(now, 'clock rates')?.found.includes('node 1 fit') === true;
      return areAsked && isClockKnown ? now : undefined;
    });
    expect(reported.ok).toBe(true);
    expect(finding(reported, 'node 1: database')?.found).toContain('open in a process');
    expect(finding(reported, 'node 1: http port')?.found).toContain('in use by this node');
    expect(finding(reported, 'clock rates')?.found).toContain('node 1 fit');
    expect(finding(reported, 'versions')).toMatchObject({ result: 'ok' });
  });

  it('fails if a node is down, for each node that it checks', async () => {
    await cluster.stopNode(3);
    const reported = await eventually('the other nodes know that it is down', async () => {
      const now = await doctor(cluster.directory, { id: 1 });
      return now.findings.some(({ found }) => found.includes('node 3 is down')) ? now : undefined;
    });
    expect(reported.ok).toBe(false);
    expect(reported.findings.find(({ found }) => found.includes('node 3 is down'))).toMatchObject({
      result: 'fail',
      action: expect.stringContaining('start it again') as string,
    });
  });

  it('fails if no node answers at the given address', async () => {
    const lines: string[] = [];
    const print = (line: string): void => void lines.push(line);
    const isSound = await examine({ node: 'http://127.0.0.1:1', version: '1', json: true, print });
    const reported = JSON.parse(lines.join('\n')) as Examined;
    expect([isSound, reported.ok]).toEqual([false, false]);
    expect(finding(reported, 'cluster')).toMatchObject({ result: 'fail' });
    // The command may mean another cluster than that of this directory, so it does not check the directory.
    expect(reported.findings.map(({ check }) => check)).toEqual(['Node.js', 'cluster']);
  });
});
