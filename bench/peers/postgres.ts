/** Starts three PostgreSQL servers. A commit waits until one of the two standbys has it on disk as well. */
import { spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import type { Address } from '../load/load-job.ts';
import { freePort, type ServerProcess, startServer, untilReady } from './servers.ts';
import { withChildren } from '../process-usage.ts';
import type { Running } from '../running.ts';
import { POSTGRES_DATABASE, POSTGRES_USER, SLIDING_LOG_SQL } from './postgres-limiter.ts';
import type { RunningThing, ThingUnderLoad } from './thing-under-load.ts';

const HOST = '127.0.0.1';
/** Where Debian keeps the programs of each version. */
const VERSIONS = '/usr/lib/postgresql';
const STANDBYS = ['standby2', 'standby3'];
/** User `nobody`, used instead of root: the programs refuse to run as root. */
const NOBODY = 65_534;

function programs(): string | undefined {
  if (!existsSync(VERSIONS)) return undefined;
  const folders = readdirSync(VERSIONS).map((version) => join(VERSIONS, version, 'bin'));
  return folders.filter((folder) => existsSync(join(folder, 'initdb'))).at(-1);
}

interface Place {
  readonly folder: string;
  readonly data: string;
  readonly owner: { readonly uid: number; readonly gid: number } | undefined;
}

function newPlace(running: Running, folder: string, name: string): Place {
  const directory = running.directory(`postgres-${name}`);
  const data = join(directory, 'data');
  const owner = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : undefined;
  mkdirSync(data, { mode: 0o700 });
  if (owner !== undefined) for (const path of [directory, data]) chownSync(path, owner.uid, owner.gid);
  return { folder, data, owner };
}

/** Runs a program. @throws Error with its output if it fails */
function runProgram({ folder, data, owner }: Place, program: string, args: readonly string[]): void {
  const { status, stderr } = spawnSync(join(folder, program), args, {
    cwd: data,
    encoding: 'utf8',
    ...owner,
  });
  if (status !== 0) throw new Error(`${program} failed: ${stderr.trim()}`);
}

async function ask<T>(address: Address, question: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ ...address, user: POSTGRES_USER, database: POSTGRES_DATABASE });
  try {
    await client.connect();
    return await question(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function startIn(
  running: Running,
  { folder, data, owner }: Place,
  port: number,
  settings: Readonly<Record<string, string>>,
): Promise<ServerProcess> {
  const all = { listen_addresses: HOST, unix_socket_directories: '', ...settings };
  const args = ['-D', data, '-p', String(port)];
  for (const [name, value] of Object.entries(all)) args.push('-c', `${name}=${value}`);
  const program = join(folder, 'postgres');
  const server = startServer(running, { program, args, directory: join(data, '..'), ...owner });
  await untilReady(server, async () => ask({ host: HOST, port }, async () => true));
  return server;
}

async function startStandby(
  running: Running,
  folder: string,
  name: string,
  primary: Address,
): Promise<{ readonly place: Place; readonly server: ServerProcess }> {
  const place = newPlace(running, folder, name);
  const { host, port } = primary;
  const from = `host=${host} port=${port} user=${POSTGRES_USER}`;
  runProgram(place, 'pg_basebackup', ['-D', place.data, '-c', 'fast', '-d', from]);
  const signal = join(place.data, 'standby.signal');
  writeFileSync(signal, '');
  if (place.owner !== undefined) chownSync(signal, place.owner.uid, place.owner.gid);
  const settings = { primary_conninfo: `${from} application_name=${name}` };
  return { place, server: await startIn(running, place, await freePort(), settings) };
}

async function untilQuorum(client: Client): Promise<void> {
  const text = `select count(*)::int as count from pg_stat_replication where state = 'streaming' and sync_state = 'quorum'`;
  for (;;) {
    const { rows } = await client.query<{ readonly count: number }>(text);
    if (rows[0]?.count === STANDBYS.length) return;
    await sleep(20);
  }
}

async function start(running: Running): Promise<RunningThing> {
  const folder = programs() ?? '';
  const place = newPlace(running, folder, 'primary');
  runProgram(place, 'initdb', [
    '-D',
    place.data,
    '-U',
    POSTGRES_USER,
    '-A',
    'trust',
    '--no-locale',
    '-E',
    'UTF8',
  ]);
  const address = { host: HOST, port: await freePort() };
  const quorum = { synchronous_standby_names: `ANY 1 (${STANDBYS.join(', ')})`, synchronous_commit: 'on' };
  const primary = await startIn(running, place, address.port, quorum);
  const standbys = [];
  for (const name of STANDBYS) standbys.push(await startStandby(running, folder, name, address));
  await ask(address, async (client) => {
    await untilQuorum(client);
    await client.query(SLIDING_LOG_SQL);
  });
  const servers = [primary, ...standbys.map(({ server }) => server)];
  const places = [place, ...standbys.map((each) => each.place)];
  return {
    // A server has one process for each connection.
    get pids() {
      return withChildren(servers.map(({ pid }) => pid));
    },
    limiter: { kind: 'postgres', addresses: [address] },
    async stop() {
      // SIGINT stops at once, without waiting for clients.
      for (const { child } of servers) child.kill('SIGINT');
      await Promise.all(servers.map(async ({ child }) => running.stop(child)));
      for (const { data } of places) running.removeDirectory(join(data, '..'));
    },
  };
}

export function postgresMissing(): string | undefined {
  return programs() === undefined ? 'PostgreSQL is not installed (apt-get install postgresql)' : undefined;
}

export function postgres(running: Running): ThingUnderLoad {
  return {
    id: 'postgres',
    name: 'PostgreSQL x3, ANY 1 of 2 standbys',
    promise: {
      disks: 2,
      failoverLoses: 'some',
      inWords:
        'synced on two disks of three before the answer; the standby that is promoted may be the third, which lacks some grants',
    },
    missing: postgresMissing,
    start: async () => start(running),
  };
}
