/**
 * A sliding log on etcd: one value per user, which holds the times of its grants and is replaced by compare-and-swap, over
 * etcd's JSON gateway. Reads are linearizable, so that a denial is as true as a grant. Time is that of the process that
 * asks, as etcd has none to offer: with several of them it would be less exact than Quorate's.
 */
import { Agent, request } from 'node:http';
import { LOAD_RULES } from '../workloads.ts';
import type { Limiter } from './limiter.ts';

const CONNECTIONS_PER_NODE = 64;
const ATTEMPTS_MAX = 20;
/** Of one grant in a value: a big-endian double of milliseconds. */
const TIME_BYTES = 8;

interface RangeAnswer {
  readonly kvs?: readonly { readonly value: string; readonly mod_revision: string }[];
}

interface TxnAnswer {
  readonly succeeded?: boolean;
}

/** @param backends the client ports of the nodes on loopback, asked in turn */
export function etcdLimiter(backends: readonly string[]): Limiter {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS_PER_NODE });
  let turn = 0;
  const post = async <T>(path: string, body: unknown): Promise<T> => {
    turn += 1;
    const port = Number(backends[turn % backends.length]);
    return postJson<T>(agent, port, path, body);
  };
  return async (user, rule) => {
    const { limit, windowMillis } = LOAD_RULES[rule];
    const key = Buffer.from(user).toString('base64');
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const { kvs } = await post<RangeAnswer>('/v3/kv/range', { key });
      const [found] = kvs ?? [];
      const now = Date.now();
      const live = liveGrants(Buffer.from(found?.value ?? '', 'base64'), now - windowMillis);
      if (live.length / TIME_BYTES >= limit) return false;
      const value = withGrant(live, now).toString('base64');
      const swapped = await post<TxnAnswer>('/v3/kv/txn', {
        compare: [{ key, target: 'MOD', result: 'EQUAL', mod_revision: found?.mod_revision ?? '0' }],
        success: [{ request_put: { key, value } }],
      });
      if (swapped.succeeded === true) return true;
    }
    throw new Error(`${user}: another request was faster, ${ATTEMPTS_MAX} times`);
  };
}

/** Grants are in order, as each was appended. */
export function liveGrants(value: Buffer, afterMillis: number): Buffer {
  let from = 0;
  while (from < value.length && value.readDoubleBE(from) <= afterMillis) from += TIME_BYTES;
  return value.subarray(from);
}

function withGrant(live: Buffer, nowMillis: number): Buffer {
  const value = Buffer.allocUnsafe(live.length + TIME_BYTES);
  live.copy(value);
  value.writeDoubleBE(nowMillis, live.length);
  return value;
}

async function postJson<T>(agent: Agent, port: number, path: string, body: unknown): Promise<T> {
  const text = JSON.stringify(body);
  return new Promise<T>((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
    const sent = request({ agent, host: '127.0.0.1', port, path, method: 'POST', headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('end', () => {
        const answer = Buffer.concat(chunks).toString();
        if (response.statusCode === 200) resolve(JSON.parse(answer) as T);
        else reject(new Error(`etcd answered ${response.statusCode}: ${answer.slice(0, 200)}`));
      });
      response.once('error', reject);
    });
    sent.once('error', reject);
    sent.end(text);
  });
}
