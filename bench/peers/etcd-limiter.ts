/**
 * A sliding log on etcd over gRPC. Each user has one value with the times of its grants, which is replaced by
 * compare-and-swap. The limiter remembers the revision it wrote last, so a grant needs one round trip. It reads the
 * value again only if another writer came between, and before a denial. etcd offers no clock, so the time is that of
 * this process; with several processes the limit would be less exact than Quorate's.
 */
import { Etcd3 } from 'etcd3';
import type { Address } from '../load/load-job.ts';
import { LOAD_RULES, type Limiter } from '../workloads.ts';

const ATTEMPTS_MAX = 20;
/** Bytes of one grant in a value: a big-endian double of milliseconds. */
const TIME_BYTES = 8;

interface Known {
  /** Revision of the key's last change (`mod_revision`); 0 if the key does not exist. */
  readonly revision: number;
  readonly value: Buffer;
}

const ABSENT: Known = { revision: 0, value: Buffer.alloc(0) };

interface RangeAnswer {
  readonly kvs: readonly { readonly mod_revision: string; readonly value: Buffer }[];
}

function knownOf({ kvs: [found] }: RangeAnswer): Known {
  return found === undefined ? ABSENT : { revision: Number(found.mod_revision), value: found.value };
}

/** Makes the limiter. @param addresses client addresses of all members */
export function etcdLimiter(addresses: readonly Address[]): Limiter {
  const client = new Etcd3({ hosts: addresses.map(({ host, port }) => `http://${host}:${port}`) });
  const known = new Map<string, Known>();
  return async (user, rule) => {
    const { limit, windowMillis } = LOAD_RULES[rule];
    let { revision, value } = known.get(user) ?? ABSENT;
    let isRead = false;
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const now = Date.now();
      const live = liveGrants(value, now - windowMillis);
      if (live.length / TIME_BYTES >= limit) {
        if (isRead) return false;
        ({ revision, value } = knownOf(await client.get(user).exec()));
        isRead = true;
        continue;
      }
      const granted = withGrant(live, now);
      const answer = await client
        .if(user, 'Mod', '==', revision)
        .then(client.put(user).value(granted))
        .else(client.get(user))
        .commit();
      if (answer.succeeded) {
        known.set(user, { revision: Number(answer.header.revision), value: granted });
        return true;
      }
      ({ revision, value } = knownOf(answer.responses[0]?.response_range ?? { kvs: [] }));
      isRead = true;
    }
    throw new Error(`${user}: another request was faster, ${ATTEMPTS_MAX} times`);
  };
}

/** The grants after a time. They are in order, because each was appended. */
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
