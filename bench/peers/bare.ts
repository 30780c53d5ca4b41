/**
 * Things under load that are small servers of this folder: the yardsticks of both protocols, and
 * `rate-limiter-flexible`.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { RespForm, Address } from '../load/load-job.ts';
import type { Running } from '../running.ts';
import { LOAD_RULES, type LoadRuleId } from '../workloads.ts';
import { redisMissing, startRedis } from './redis.ts';
import type { GrantPromise, ThingUnderLoad } from './thing-under-load.ts';

export interface NodeProgram {
  readonly pid: number;
  readonly address: Address;
  readonly stop: () => Promise<void>;
}

/**
 * Starts the program.
 *
 * @param name a file of this folder, without its extension
 * @throws Error if it ends before it listens
 */
export async function startNodeProgram(
  running: Running,
  name: string,
  args: readonly string[] = [],
): Promise<NodeProgram> {
  const child = running.add(fork(fileURLToPath(new URL(`${name}.js`, import.meta.url)), args));
  const ended = once(child, 'exit').then(() => {
    throw new Error(`${name} ended before it listened`);
  });
  const [port] = (await Promise.race([once(child, 'message'), ended])) as [number];
  ended.catch(() => undefined);
  return {
    pid: child.pid ?? 0,
    address: { host: '127.0.0.1', port },
    stop: async () => running.stop(child),
  };
}

/** Arguments of CL.THROTTLE for a rule: the burst beyond the first request, the count, and the seconds. */
function throttle(rule: LoadRuleId): readonly string[] {
  const { limit, windowMillis } = LOAD_RULES[rule];
  return ['CL.THROTTLE', '{key}', String(limit - 1), String(limit), String(windowMillis / 1_000)];
}

const THROTTLE_FORM: RespForm = {
  commands: { open: throttle('open'), spent: throttle('spent'), small: throttle('small') },
  grantValue: 0,
  waitForReplicas: 0,
};

const NO_PROMISE: GrantPromise = { disks: 0, failoverLoses: '-', inWords: 'nothing: it says yes' };

export function bareHttp(running: Running): ThingUnderLoad {
  return {
    id: 'bare-http',
    name: 'bare Fastify route',
    promise: NO_PROMISE,
    async start() {
      const { pid, address, stop } = await startNodeProgram(running, 'http-service', ['bare']);
      return { pids: [pid], http: { addresses: [address] }, stop };
    },
  };
}

export function bareResp(running: Running): ThingUnderLoad {
  return {
    id: 'bare-resp',
    name: 'bare RESP echo in Node',
    promise: NO_PROMISE,
    async start() {
      const { pid, address, stop } = await startNodeProgram(running, 'bare-resp-server');
      return { pids: [pid], resp: { addresses: [address], form: THROTTLE_FORM }, stop };
    },
  };
}

export function flexible(running: Running): ThingUnderLoad {
  return {
    id: 'flexible',
    name: 'rate-limiter-flexible, Redis',
    promise: {
      disks: 0,
      failoverLoses: 'all',
      inWords: 'in the memory of one process; a fixed window, no sliding log',
    },
    missing: redisMissing,
    async start() {
      const directory = running.directory('flexible');
      const redis = await startRedis(running, directory);
      const service = await startNodeProgram(running, 'http-service', [
        'flexible',
        String(redis.address.port),
      ]);
      return {
        pids: [service.pid, redis.process.pid],
        http: { addresses: [service.address] },
        async stop() {
          await service.stop();
          await running.stop(redis.process.child);
          running.removeDirectory(directory);
        },
      };
    },
  };
}
