/** Tests the certificate commands, and that a node without certificates refuses to listen on a public address. */
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createServer, type Server } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { prepare } from '../../cluster/prepare.ts';
import { EXIT_TEMPORARY } from '../../src/cli/explain-error.ts';
import { readCluster, writeCluster } from '../../src/config/cluster-directory.ts';
import type { NodeAddress } from '../../src/api/node-address.ts';
import type { ClusterConfig } from '../../src/config/config.ts';
import { eventually, freeBasePort, temporaryDirectory } from '../cluster/harness.ts';
import { type Ended, ended, ran } from './command.ts';

const USAGE = 64;
const UNAVAILABLE = 69;
let directory: string;
let data: string;
let basePort: number;
beforeEach(async () => {
  directory = await temporaryDirectory();
  data = join(directory, 'data');
  basePort = await freeBasePort();
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});

async function quorate(...args: readonly string[]): Promise<Ended> {
  return ran(args, directory);
}

async function init(...args: readonly string[]): Promise<ClusterConfig> {
  const { code } = await quorate('init', '--nodes', '1', '--base-port', String(basePort), ...args);
  expect(code).toBe(0);
  const config = await readCluster(data);
  if (config === undefined) throw new Error('there is no cluster');
  return config;
}

/** The node with all its addresses on another machine. */
function elsewhere(node: NodeAddress): NodeAddress {
  const host = '10.0.0.9';
  return { id: node.id, http: { ...node.http, host }, peer: { ...node.peer, host } };
}

/** Serves TLS with the certificate of node 1, and answers nothing. */
async function listening(): Promise<Server> {
  const server = createServer({
    cert: await readFile(join(data, 'certs', 'node-1.crt')),
    key: await readFile(join(data, 'certs', 'node-1.key')),
  });
  await new Promise<void>((resolve) => server.listen(basePort, '127.0.0.1', resolve));
  return server;
}

describe('quorate certs', () => {
  it('needs a cluster, and a CA before a certificate; there is only one CA for good', async () => {
    expect(await quorate('certs', 'init')).toMatchObject({ code: USAGE });
    await init();
    const early = await quorate('certs', 'issue', '1');
    expect(early).toMatchObject({ code: USAGE });
    expect(early.said).toMatch(/ca\.crt is not there; make the CA of the cluster with `quorate certs init`/);
    expect(await quorate('certs', 'init')).toMatchObject({ code: 0 });
    const key = await readFile(join(data, 'ca', 'ca.key'));
    const again = await quorate('certs', 'init');
    expect(again).toMatchObject({ code: USAGE });
    expect(again.said).toMatch(/ca\.key is there already/);
    expect(await readFile(join(data, 'ca', 'ca.key'))).toEqual(key);
    const issued = await quorate('certs', 'issue', '1', '--hostname', '10.0.0.1', '--hostname', 'a.example');
    expect(issued.stdout).toMatch(
      /node-1\.crt and .*node-1\.key, for 127\.0\.0\.1, 10\.0\.0\.1, a\.example, valid until/,
    );
    expect(await readdir(join(data, 'certs'))).toEqual(['ca.crt', 'node-1.crt', 'node-1.key']);
    await writeFile(join(data, 'ca', 'ca.key'), 'no key');
    const broken = await quorate('certs', 'issue', '1');
    expect(broken.said).toBe(
      'quorate: the CA cannot sign: its key must be one of the curve P-256, in PEM and without a passphrase',
    );
  });

  it('keeps the key of the CA in its own directory, says to move it, and uses it from another path', async () => {
    const { stdout } = await quorate('init', '--nodes', '1', '--base-port', String(basePort), '--tls');
    expect(stdout).toContain('the key of the CA is data/ca/ca.key');
    expect(stdout).toContain('Move it to a machine without a node');
    expect(await readdir(join(data, 'certs'))).toEqual(['ca.crt', 'node-1.crt', 'node-1.key']);
    const moved = join(directory, 'safe.key');
    await rename(join(data, 'ca', 'ca.key'), moved);
    const issue = ['certs', 'issue', '2', '--hostname', 'a'];
    const missing = await quorate(...issue);
    expect(missing).toMatchObject({ code: USAGE });
    expect(missing.said).toBe(
      'quorate: data/ca/ca.key is not there: put the key of the CA there, or give its path with --ca-key',
    );
    const elsewhere = await quorate(...issue, '--ca-key', 'none.key');
    expect(elsewhere.said).toContain('none.key is not there');
    expect(await quorate(...issue, '--ca-key', moved)).toMatchObject({ code: 0 });
    // The nodes would not trust a second CA.
    const again = await quorate('certs', 'init');
    expect(again).toMatchObject({ code: USAGE });
    expect(again.said).toContain('ca.crt is there already');
    // The old layout of the directory.
    await rename(moved, join(data, 'certs', 'ca.key'));
    expect((await quorate(...issue)).said).toContain('move data/certs/ca.key to data/ca/ca.key');
  });

  it.each([
    [['0'], 'expected a whole number from 1 to 2147483647'],
    [['1', '--hostname', 'a:80'], 'expected a host name or an address, without a port'],
    [['1', '--hostname', 'a,URI:quorate:b/2'], 'expected a host name or an address, without a port'],
    [['1', '--days', '3651'], 'expected a whole number from 1 to 3650'],
  ])('issue refuses %j', async (args, message) => {
    const { code, said } = await quorate('certs', 'issue', ...args);
    expect(said).toContain(message);
    expect(code).toBe(USAGE);
  });
});

describe('a node', () => {
  it('does not start without TLS on an address that other machines reach', async () => {
    const config = await init();
    const [node] = config.nodes;
    if (node === undefined) throw new Error('there is no node');
    const open = { ...node, http: { ...node.http, host: '0.0.0.0' } };
    await writeCluster(data, { ...config, nodes: [open] });
    const { code, said } = await ended('quorate', ['node', '1'], directory);
    expect(said).toMatch(
      /http address 0\.0\.0\.0:\d+ needs TLS \(`tls` with `listeners` in cluster\.json\).*--insecure/,
    );
    expect(code).toBe(USAGE);
  });

  it('does not start with the certificate of another node, or if a configured one is missing', async () => {
    await init('--tls');
    await rm(join(data, 'certs', 'node-1.key'));
    const missing = await ended('quorate', ['node', '1'], directory);
    expect(missing.said).toMatch(/^quorate: tls\.key \(data\/certs\/node-1\.key\) is not there/);
    expect(missing.code).toBe(USAGE);
    await quorate('certs', 'issue', '2');
    for (const kind of ['crt', 'key'])
      await writeFile(
        join(data, 'certs', `node-1.${kind}`),
        await readFile(join(data, 'certs', `node-2.${kind}`)),
      );
    const wrong = await ended('quorate', ['node', '1'], directory);
    expect(wrong.said).toMatch(/is for node 2, but this is node 1/);
    expect(wrong.code).toBe(USAGE);
  });
});

describe('a certificate that is not for the address of its node', () => {
  it('is found by doctor before the start, and named by a command that meets it', async () => {
    const config = await init('--tls');
    const [node] = config.nodes;
    if (node === undefined) throw new Error('there is no node');
    await writeCluster(data, { ...config, nodes: [{ ...node, http: { ...node.http, host: '10.0.0.9' } }] });
    expect((await ended('quorate', ['doctor'], directory)).stdout).toMatch(
      /^WARN {2}node 1: certificate of tls: .*node-1\.crt is not for 10\.0\.0\.9 -> issue another one.*`quorate certs issue 1 --hostname 10\.0\.0\.9/m,
    );
    await quorate('certs', 'issue', '1', '--hostname', 'limits.example');
    expect((await ended('quorate', ['doctor'], directory)).stdout).toMatch(
      /^ok {4}node 1: certificate of tls: /m,
    );
    // No name is left for 127.0.0.1.
    await writeCluster(data, { ...config, nodes: [elsewhere(node)] });
    await quorate('certs', 'issue', '1');
    const server = await listening();
    const url = `https://127.0.0.1:${basePort}`;
    const asked = await quorate('users', 'get', 'ada', '--node', url, '--ca', 'data/certs/ca.crt');
    server.close();
    expect(asked.said).toContain('has a certificate that is not for 127.0.0.1');
    expect(asked.said).toContain('`quorate certs issue <id> --hostname 127.0.0.1`');
  });
});

describe('--ca', () => {
  it('must name certificates; with them an absent node is reported as usual', async () => {
    const apply = ['rules', 'apply', '-', '--node', `127.0.0.1:${basePort}`];
    await writeFile(join(directory, 'empty'), '');
    expect((await quorate(...apply, '--ca', 'none')).said).toMatch(/^quorate: --ca none cannot be read/);
    expect((await quorate(...apply, '--ca', 'empty')).said).toMatch(
      /^quorate: --ca empty holds no certificate in PEM/,
    );
    await init('--tls');
    const remove = [
      'nodes',
      'remove',
      '9',
      '--node',
      `https://127.0.0.1:${basePort}`,
      '--ca',
      'data/certs/ca.crt',
      '--timeout',
      '2000',
    ];
    // On a busy machine the command may report a timeout instead of the refusal.
    const { code, said } = await eventually('the connection is refused before the timeout', async () => {
      const reported = await ended('quorate', remove, directory);
      return reported.code === EXIT_TEMPORARY ? undefined : reported;
    });
    expect(said).toMatch(/no node listens at https:.*ECONNREFUSED/);
    expect(code).toBe(UNAVAILABLE);
  });
});

describe('npm start --tls', () => {
  it('is only for a new cluster; with --fresh it makes new certificates, and keeps files that it did not make', async () => {
    await init();
    const again = prepare({ data, tls: true, fresh: false });
    await expect(again).rejects.toThrow(/^--tls is for a new cluster: make certificates/);
    const first = await prepare({ data, fresh: true, tls: true, nodes: 3, basePort });
    const own = join(data, 'certs', 'other.key');
    await writeFile(own, 'mine');
    const before = await readFile(join(data, 'certs', 'ca.crt'));
    const second = await prepare({ data, fresh: true, tls: true, nodes: 3, basePort });
    expect(second.clusterId).not.toBe(first.clusterId);
    expect(await readFile(join(data, 'certs', 'ca.crt'))).not.toEqual(before);
    expect(await readFile(own, 'utf8')).toBe('mine');
  });
});
