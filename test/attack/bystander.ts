/**
 * An honest client that runs during the attacks, over HTTP (on a kept connection and on new ones) and over the Redis
 * protocol. It measures how much other clients suffer.
 */
import { Agent, request } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Target } from './target.ts';

const PAUSE_MILLIS = 20;
/** A later answer counts as missing. */
const GIVE_UP_MILLIS = 10_000;

export interface Noticed {
  readonly asked: number;
  /** Granted. */
  readonly granted: number;
  /** Refused as undecided (503, UNAVAILABLE). */
  readonly undecided: number;
  /** Missing or unexpected answers, as texts. */
  readonly failed: readonly string[];
  readonly p50Millis: number;
  readonly p99Millis: number;
}

type Ask = () => Promise<'granted' | 'undecided'>;

export class Bystander {
  readonly #kept: Agent;
  readonly #fresh: Agent;
  readonly #redis: Redis;
  readonly #ways: readonly (readonly [string, Ask])[];
  #isOver = false;
  #loop: Promise<void> = Promise.resolve();
  #rounds = 0;
  #millis: number[] = [];
  #counts = { granted: 0, undecided: 0 };
  #failed: string[] = [];

  constructor(target: Target) {
    const tls = { ca: target.ca, checkServerIdentity: () => undefined };
    this.#kept = new Agent({ ...tls, keepAlive: true, maxSockets: 1 });
    this.#fresh = new Agent({ ...tls, keepAlive: false });
    this.#redis = new Redis({
      ...target.address(2, 'resp'),
      tls,
      username: 'default',
      password: target.tokens.decide,
      maxRetriesPerRequest: 0,
      commandTimeout: GIVE_UP_MILLIS,
    });
    this.#redis.on('error', () => {});
    const http = (agent: Agent) => async (): Promise<'granted' | 'undecided'> => askHttp(target, agent);
    this.#ways = [
      ['HTTP', http(this.#kept)],
      ['HTTP, a new connection', http(this.#fresh)],
      ['RESP', async () => this.#askRedis()],
    ];
  }

  begin(): void {
    this.#loop = this.#run();
  }

  /** Resolves when each listener has answered at least one more complete request. */
  async asksAll(): Promise<void> {
    const until = this.#rounds + 2;
    while (this.#rounds < until && !this.#isOver) await delay(PAUSE_MILLIS);
  }

  /** The counts since the last call. */
  noticed(): Noticed {
    const sorted = this.#millis.toSorted((a, b) => a - b);
    const at = (fraction: number): number => sorted[Math.ceil(sorted.length * fraction) - 1] ?? 0;
    const { granted, undecided } = this.#counts;
    const failed = this.#failed;
    this.#millis = [];
    this.#counts = { granted: 0, undecided: 0 };
    this.#failed = [];
    return {
      asked: sorted.length,
      granted,
      undecided,
      failed,
      p50Millis: at(0.5),
      p99Millis: at(0.99),
    };
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#loop;
    this.#redis.disconnect();
    this.#kept.destroy();
    this.#fresh.destroy();
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      for (const [way, ask] of this.#ways) {
        const startedAt = performance.now();
        try {
          const outcome = await ask();
          this.#counts[outcome] += 1;
        } catch (error) {
          this.#failed.push(`${way}: ${error instanceof Error ? error.message : String(error)}`);
        }
        this.#millis.push(performance.now() - startedAt);
        await delay(PAUSE_MILLIS);
      }
      this.#rounds += 1;
    }
  }

  async #askRedis(): Promise<'granted' | 'undecided'> {
    try {
      const [allowed] = (await this.#redis.call('ALLOW', 'bystander')) as readonly number[];
      if (allowed !== 1) throw new Error(`denied`);
      return 'granted';
    } catch (error) {
      if (error instanceof Error && error.message.startsWith('UNAVAILABLE')) return 'undecided';
      throw error;
    }
  }
}

async function askHttp(target: Target, agent: Agent): Promise<'granted' | 'undecided'> {
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        ...target.address(1, 'http'),
        agent,
        method: 'POST',
        path: '/v1/allow',
        timeout: GIVE_UP_MILLIS,
        headers: {
          'content-type': 'application/json',
          authorization: `Bearer ${target.tokens.decide}`,
        },
      },
      (response) => {
        response.resume();
        response.once('end', () => {
          if (response.statusCode === 200) resolve('granted');
          else if (response.statusCode === 503) resolve('undecided');
          else reject(new Error(`status ${response.statusCode}`));
        });
        response.once('error', reject);
      },
    );
    asked.once('timeout', () => asked.destroy(new Error(`no answer within ${GIVE_UP_MILLIS} ms`)));
    asked.once('error', reject);
    asked.end('{"userId":"bystander"}');
  });
}
