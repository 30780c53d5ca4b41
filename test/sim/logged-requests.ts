/** The requests of a log entry, read from its bytes as src/limiter/log/batch.ts describes them, by no code of the product. */
import { EntryBytes } from './entry-bytes.ts';
import type { Asked } from './id-ledger.ts';

const ALLOW = 5;
/** The same, with refunds among them. */
const REFUNDS = 8;
/** The same, with requests of several rows, one for each of their limits. */
const JOINT = 10;
/** Those, and refunds. */
const JOINT_REFUNDS = 11;
/** The same two, with requests among them that count only as long as a record is the same. */
const GUARDED = 13;
const GUARDED_REFUNDS = 14;
/** What stands before such a request: a key, and the version of its record. */
const GUARD = 17;
const DIGEST = 32;
const FURTHER = 64;
const RECALL = 128;

/** How many rows of its entry it takes. */
export function rowsOf({ further = [] }: Asked): number {
  return 1 + further.length;
}

export function loggedRequests(data: Uint8Array): Asked[] {
  const entry = new EntryBytes(data);
  const { byte, integer, text } = entry;
  const kind = entry.length === 0 ? 0 : byte();
  if (![ALLOW, REFUNDS, JOINT, JOINT_REFUNDS, GUARDED, GUARDED_REFUNDS].includes(kind)) return [];
  let rows = integer();
  const rules = Array.from({ length: integer() }, text);
  const row = (has: number) => {
    const userId = text();
    const rule = rules[has & 1 ? integer() : 0] ?? '';
    return { userId, rule, cost: has & 2 ? integer() : 1 };
  };
  const requests: Asked[] = [];
  while (rows > 0) {
    rows -= 1;
    let has = byte();
    const guard = has === GUARD ? { userId: text(), version: integer() } : undefined;
    if (guard !== undefined) has = byte();
    if (has & 16) {
      const [userId, requestId] = [text(), text()];
      const timestampMillis = undefined;
      requests.push({ userId, rule: '', cost: 0, timestampMillis, requestId, isRefund: true });
      continue;
    }
    const asked = {
      ...row(has),
      timestampMillis: has & 4 ? integer() : undefined,
      requestId: has & 8 ? text() : undefined,
      ...(guard !== undefined && { guard }),
    };
    const askedDigest = has & DIGEST ? integer() : undefined;
    const further: ReturnType<typeof row>[] = [];
    for (; rows > 0 && entry.next & FURTHER; rows -= 1) further.push(row(byte()));
    if (askedDigest === undefined) requests.push(asked);
    else if (has & RECALL) requests.push({ ...asked, askedDigest, isRecall: true });
    else requests.push({ ...asked, askedDigest, ...(further.length > 0 && { further }) });
  }
  return requests;
}
