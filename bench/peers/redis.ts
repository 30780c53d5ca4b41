/** `redis-server` with a sliding log in Lua: in memory alone, with a synced append-only file, and with a replica. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Address, RespForm } from '../load/load-job.ts';
import { freePort } from '../ports.ts';
import type { Running } from '../running.ts';
import { LOAD_RULES } from '../workloads.ts';
import { isInstalled, type ServerProcess, startServer, untilReady } from './servers.ts';
import { SLIDING_LOG_SCRIPT } from './sliding-log-script.ts';
import type { RunningThing, ThingUnderLoad } from './thing-under-load.ts';

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
  // What goes wrong is thrown by the call that meets it.
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

/** Waits until the replica has everything and is told every change at once. */
async function untilReplicated(address: Address): Promise<void> {
  await ask(address, async (client) => {
    while (!(await client.info('replication')).includes('state=online')) await sleep(20);
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
  readonly promise: string;
  readonly options: readonly string[];
  readonly hasReplica: boolean;
}

const VARIANTS: readonly RedisVariant[] = [
  {
    id: 'redis-memory',
    name: 'Redis, Lua, memory',
    promise: 'in the memory of one process',
    options: [],
    hasReplica: false,
  },
  {
    id: 'redis-aof',
    name: 'Redis, Lua, AOF always',
    promise: 'on one disk, synced before the answer',
    options: ['--appendonly', 'yes', '--appendfsync', 'always'],
    hasReplica: false,
  },
  {
    id: 'redis-wait',
    name: 'Redis, Lua, replica + WAIT 1',
    promise: 'in the memory of two processes; a failover may lose it all the same',
    options: [],
    hasReplica: true,
  },
];

async function startVariant(running: Running, variant: RedisVariant): Promise<RunningThing> {
  const directories = [running.directory(variant.id)];
  const server = await startRedis(running, directories[0] ?? '', variant.options);
  const servers = [server];
  if (variant.hasReplica) {
    const { host, port } = server.address;
    const replica = running.directory(`${variant.id}-replica`);
    directories.push(replica);
    servers.push(await startRedis(running, replica, ['--replicaof', host, String(port)]));
    await untilReplicated(server.address);
  }
  const sha = await loadScript(server.address);
  return {
    pids: servers.map(({ process }) => process.pid),
    resp: { addresses: [server.address], form: formOf(sha, variant.hasReplica ? 1 : 0) },
    async stop() {
      for (const { process } of servers) await running.stop(process.child);
      for (const directory of directories) running.removeDirectory(directory);
    },
  };
}

export function redisVariants(running: Running): ThingUnderLoad[] {
  return VARIANTS.map((variant) => ({
    id: variant.id,
    name: variant.name,
    promise: variant.promise,
    missing: redisMissing,
    start: async () => startVariant(running, variant),
  }));
}
