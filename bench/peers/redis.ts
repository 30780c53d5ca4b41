/** Redis with a sliding log in Lua: in memory only, with a synced append-only file, and with three such servers. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Address, RespForm } from '../load/load-job.ts';
import { freePort, isInstalled, type ServerProcess, startServer, untilReady } from './servers.ts';
import type { Running } from '../running.ts';
import { LOAD_RULES } from '../workloads.ts';
import type { GrantPromise, RunningThing, ThingUnderLoad } from './thing-under-load.ts';

/**
 * KEYS[1]: the user. ARGV: limit, window in milliseconds. Answers 1 for a grant, 0 for a denial. Time is the server's,
 * in microseconds. A counter distinguishes two grants in the same microsecond.
 */
export const SLIDING_LOG_SCRIPT = `
local limit = tonumber(ARGV[1])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - ARGV[2] * 1000))
local count = redis.call('ZCARD', KEYS[1])
if count >= limit then return 0 end
local time = string.format('%.0f', now)
redis.call('ZADD', KEYS[1], time, time .. '-' .. count)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
`;

const PROGRAM = 'redis-server';
const HOST = '127.0.0.1';

export interface RedisServer {
  readonly process: ServerProcess;
  readonly address: Address;
}

export function redisMissing(): string | undefined {
  return isInstalled(PROGRAM) ? undefined : 'redis-server is not installed (apt-get install redis-server)';
}

async function ask<T>(address: Address, question: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis({ ...address, lazyConnect: true, retryStrategy: () => null });
  // Each call throws its own error; this listener only keeps the process alive.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await question(client);
  } finally {
    client.disconnect();
  }
}

/** Starts a server that keeps nothing on disk unless `options` say so, and waits until it answers. */
export async function startRedis(
  running: Running,
  directory: string,
  options: readonly string[] = [],
): Promise<RedisServer> {
  const address = { host: HOST, port: await freePort() };
  const bind = ['--port', String(address.port), '--bind', HOST, '--dir', directory];
  const args = [...bind, '--save', '', '--appendonly', 'no', ...options];
  const server = startServer(running, { program: PROGRAM, args, directory });
  await untilReady(server, async () => (await ask(address, (client) => client.ping())) === 'PONG');
  return { process: server, address };
}

async function loadScript(address: Address): Promise<string> {
  return ask(address, async (client) => String(await client.script('LOAD', SLIDING_LOG_SCRIPT)));
}

/** Waits until all replicas are in sync. */
async function untilReplicated(address: Address, replicas: number): Promise<void> {
  await ask(address, async (client) => {
    while ((await client.info('replication')).split('state=online').length <= replicas) await sleep(20);
  });
}

function formOf(sha: string, waitForReplicas: number): RespForm {
  const command = (rule: keyof typeof LOAD_RULES): readonly string[] => {
    const { limit, windowMillis } = LOAD_RULES[rule];
    return ['EVALSHA', sha, '1', '{key}', String(limit), String(windowMillis)];
  };
  return {
    commands: { open: command('open'), spent: command('spent'), small: command('small') },
    grantValue: 1,
    waitForReplicas,
  };
}

interface RedisVariant {
  readonly id: string;
  readonly name: string;
  readonly promise: GrantPromise;
  readonly options: readonly string[];
  readonly replicas: number;
}

const SYNCED = ['--appendonly', 'yes', '--appendfsync', 'always'];

/** A replica syncs its file before it acknowledges, so after `WAIT 1` a grant is on two disks. */
const STRICT: RedisVariant = {
  id: 'redis-strict',
  name: 'Redis x3, Lua, AOF always, WAIT 1',
  promise: {
    disks: 2,
    failoverLoses: 'some',
    inWords:
      'synced on two disks of three before the answer; the replica that is promoted may be the third, which lacks some grants; ' +
      'a write stays where WAIT reports too few replicas',
  },
  options: SYNCED,
  replicas: 2,
};

const OTHERS: readonly RedisVariant[] = [
  {
    id: 'redis-memory',
    name: 'Redis, Lua, memory',
    promise: { disks: 0, failoverLoses: 'all', inWords: 'in the memory of one process' },
    options: [],
    replicas: 0,
  },
  {
    id: 'redis-aof',
    name: 'Redis, Lua, AOF always',
    promise: { disks: 1, failoverLoses: 'all', inWords: 'on one disk, synced before the answer' },
    options: SYNCED,
    replicas: 0,
  },
];

async function startVariant(running: Running, variant: RedisVariant): Promise<RunningThing> {
  const directories = [running.directory(variant.id)];
  const server = await startRedis(running, directories[0] ?? '', variant.options);
  const servers = [server];
  const { host, port } = server.address;
  for (let i = 0; i < variant.replicas; i += 1) {
    const replica = running.directory(`${variant.id}-replica`);
    directories.push(replica);
    servers.push(await startRedis(running, replica, [...variant.options, '--replicaof', host, String(port)]));
  }
  await untilReplicated(server.address, variant.replicas);
  const sha = await loadScript(server.address);
  return {
    pids: servers.map(({ process }) => process.pid),
    resp: { addresses: [server.address], form: formOf(sha, variant.replicas > 0 ? 1 : 0) },
    async stop() {
      for (const { process } of servers) await running.stop(process.child);
      for (const directory of directories) running.removeDirectory(directory);
    },
  };
}

function thingOf(variant: RedisVariant, running: Running): ThingUnderLoad {
  const { id, name, promise } = variant;
  return { id, name, promise, missing: redisMissing, start: async () => startVariant(running, variant) };
}

export function strictRedis(running: Running): ThingUnderLoad {
  return thingOf(STRICT, running);
}

export function otherRedis(running: Running): ThingUnderLoad[] {
  return OTHERS.map((variant) => thingOf(variant, running));
}
