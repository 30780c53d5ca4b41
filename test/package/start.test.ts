/**
 * Tests that `npm start` checks the ports before it installs anything. The set-up and the compiled command are fakes.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { addressesOf, addressText, type HostPort } from '../../src/api/node-address.ts';
import { LOCAL_DEFAULTS, localConfig } from '../../src/config/cluster-directory.ts';
import type { ClusterConfig } from '../../src/config/config.ts';
import { freeBasePort, temporaryDirectory } from '../cluster/harness.ts';

const ROOT = join(import.meta.dirname, '../..');
const UNAVAILABLE = 69;

let clone: string;
let basePort: number;
let config: ClusterConfig;
let servers: Server[];

beforeEach(async () => {
  clone = await temporaryDirectory();
  for (const name of ['cluster/start.mjs', 'cluster/ports.mjs', 'package.json'])
    cpSync(join(ROOT, name), join(clone, name));
  writeFileSync(join(clone, 'cluster/setup.mjs'), "console.log('set up');\n");
  mkdirSync(join(clone, 'dist/cluster'), { recursive: true });
  writeFileSync(
    join(clone, 'dist/cluster/start.js'),
    "console.log('runs', process.pid, process.argv.slice(2).join(' '));\n",
  );
  basePort = await freeBasePort();
  config = localConfig({ ...LOCAL_DEFAULTS, basePort });
  servers = [];
});
afterEach(async () => {
  await Promise.all(servers.map(async (server) => new Promise((resolve) => server.close(resolve))));
  rmSync(clone, { recursive: true });
});

async function take({ host, port }: HostPort, server: Server = createServer()): Promise<void> {
  servers.push(server);
  // A stream that is never read never ends.
  server.on('connection', (socket) => socket.resume());
  server.listen(port, host);
  await once(server, 'listening');
}

function addressesOfNode(id: number): HostPort[] {
  return config.nodes.filter((node) => node.id === id).flatMap((node) => Object.values(addressesOf(node)));
}

/** Creates a cluster whose nodes have all run before. */
function store(known: Readonly<Record<number, object>> = {}): void {
  mkdirSync(join(clone, 'data'));
  writeFileSync(join(clone, 'data/cluster.json'), JSON.stringify(config));
  for (const { id } of config.nodes) {
    mkdirSync(join(clone, `data/node-${id}`));
    if (known[id] !== undefined)
      writeFileSync(join(clone, `data/node-${id}/members.json`), JSON.stringify(known[id]));
  }
}

async function started(
  ...args: string[]
): Promise<{ readonly code: number | null; readonly said: string; readonly child: ChildProcess }> {
  const child = spawn(process.execPath, [join(clone, 'cluster/start.mjs'), ...args], { cwd: clone });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await once(child, 'close');
  return { code: child.exitCode, said, child };
}

it('names every port of a new cluster that is in use, and installs nothing', async () => {
  const all = config.nodes.flatMap((node) => Object.values(addressesOf(node)));
  for (const address of all) await take(address);
  const { code, said } = await started('--base-port', String(basePort));
  for (const address of all) expect(said).toContain(addressText(address));
  expect(said).toMatch(/^quorate: in use: .*nothing was installed or built.*--base-port N/);
  expect(said).not.toContain('set up');
  expect(code).toBe(UNAVAILABLE);
  expect(existsSync(join(clone, 'data'))).toBe(false);
});

it('sets up and runs the command with its options, in the same process, if all ports are free', async () => {
  const { code, said, child } = await started('--base-port', String(basePort), '--limit', '7');
  expect(said).toBe(`set up\nruns ${child.pid} --base-port ${basePort} --limit 7\n`);
  expect(code).toBe(0);
});

it('checks the ports in cluster.json, except those of removed nodes', async () => {
  store({ 1: { nodes: [1, 2], retired: [3] }, 3: { nodes: [1, 2], retired: [3], isRemoved: true } });
  for (const address of addressesOfNode(3)) await take(address);
  expect((await started()).code).toBe(0);
  const [address] = addressesOfNode(2);
  if (address === undefined) throw new Error('node 2 listens');
  await take(address);
  const { code, said } = await started();
  expect(said).toContain(`in use: ${addressText(address)};`);
  expect(code).toBe(UNAVAILABLE);
});

it('checks the ports of a new cluster, and not those of the cluster that --fresh or --base-port replace', async () => {
  store();
  for (const address of addressesOfNode(1)) await take(address);
  const other = ['--base-port', String(await freeBasePort())];
  expect((await started(...other)).code).toBe(0);
  expect((await started('--fresh', ...other)).code).toBe(0);
  expect((await started('--fresh', '--base-port', String(basePort))).code).toBe(UNAVAILABLE);
});

it('says which node of a cluster listens there', async () => {
  const [address] = addressesOfNode(1);
  if (address === undefined) throw new Error('node 1 listens');
  const report = { self: { id: 1 }, nodes: [{ id: 1, pid: 4711 }] };
  await take(
    address,
    createHttpServer((_, response) => response.end(JSON.stringify(report))),
  );
  const { said } = await started('--base-port', String(basePort));
  expect(said).toContain(`${addressText(address)} (node 1 of a cluster that runs, pid 4711)`);
});

it.each([['--help'], ['--nodes', 'many'], ['--base-port', 'x']])(
  'runs the command with options that it cannot read: %s',
  async (...args) => {
    expect((await started(...args)).said).toContain('set up\nruns');
  },
);
