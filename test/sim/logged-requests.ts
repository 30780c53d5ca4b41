/**
 * Parses the requests of a log entry from its bytes as src/limiter/log/batch.ts describes them, without the code of the
 * product.
 */
import { EntryBytes } from './entry-bytes.ts';
import type { Asked } from './id-ledger.ts';

const BATCH = 1;

/** The number of rows that it takes in its entry. */
export function rowsOf({ further = [] }: Asked): number {
  return 1 + further.length;
}

export function loggedRequests(data: Uint8Array): Asked[] {
  const entry = new EntryBytes(data);
  const { byte, integer, text } = entry;
  if (entry.length === 0 || byte() !== BATCH) return [];
  let columns = integer();
  const size = integer();
  const rules = Array.from({ length: integer() }, text);
  /** Reads the next column, one value per row, if the column exists. */
  const column = <T>(value: () => T): T[] => {
    const isThere = columns % 2 === 1;
    columns = (columns - (columns % 2)) / 2;
    return isThere ? Array.from({ length: size }, value) : [];
  };
  const keys = column(text);
  const ruleAt = column(integer);
  const costs = column(integer);
  const stamps = column(integer);
  const ids = column(text);
  const refunds = column(integer);
  const digests = column(integer);
  const counts = column(integer);
  const recalls = column(integer);
  const guards = column(() => {
    const userId = text();
    return userId === '' ? undefined : { userId, version: integer() };
  });
  const settles = column(integer);
  const attempts = column(integer);
  const limitAt = (row: number) => ({
    userId: keys[row] ?? '',
    rule: rules[ruleAt[row] ?? 0] ?? '',
    cost: 1 + (costs[row] ?? 0),
    ...(settles[row] === 1 && { isSettled: true }),
  });
  const requests: Asked[] = [];
  for (let row = 0; row < size; row += 1 + (counts[row] ?? 0)) {
    const requestId = ids[row] || undefined;
    if (refunds[row] === 1) {
      const { userId } = limitAt(row);
      requests.push({ userId, rule: '', cost: 0, timestampMillis: undefined, requestId, isRefund: true });
      continue;
    }
    const further = Array.from({ length: counts[row] ?? 0 }, (_, i) => limitAt(row + 1 + i));
    const askedDigest = digests[row] || undefined;
    const attempt = attempts[row] || undefined;
    const [stamp, guard] = [stamps[row] ?? 0, guards[row]];
    requests.push({
      ...limitAt(row),
      timestampMillis: stamp === 0 ? undefined : stamp - 1,
      requestId,
      ...(guard !== undefined && { guard }),
      ...(askedDigest !== undefined && { askedDigest }),
      ...(attempt !== undefined && { attempt }),
      ...(recalls[row] === 1 && { isRecall: true }),
      ...(further.length > 0 && { further }),
    });
  }
  return requests;
}
