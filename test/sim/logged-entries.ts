/**
 * Parses log entries from their bytes, without the code of the product: the requests in an entry, as
 * src/limiter/log/batch.ts describes them, and the changes of operators, as src/limiter/log/customer-entry.ts does.
 */
import type { LimitOverride } from '../../src/api/customer-record.ts';
import type { Asked } from './id-ledger.ts';

const BATCH = 1;
const CUSTOMERS = 4;
const ENDS = 2;

/** The bytes of an entry, read one value after the other. */
class EntryBytes {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(data: Uint8Array) {
    this.#bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  }

  get length(): number {
    return this.#bytes.length;
  }

  readonly byte = (): number => this.#bytes.readUInt8(this.#at++);

  readonly integer = (): number => {
    const value = this.byte();
    return value < 128 ? value : value - 128 + 128 * this.integer();
  };

  readonly text = (): string => {
    const length = this.integer();
    this.#at += length;
    return this.#bytes.toString('utf8', this.#at - length, this.#at);
  };
}

/** The number of rows that it takes in its entry. */
export function rowsOf({ further = [] }: Asked): number {
  return 1 + further.length;
}

/** The requests in an entry, in order; empty if the entry holds anything else. */
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

/** An operator's change of a key. */
export type Said =
  | { readonly type: 'read' }
  | {
      readonly type: 'put';
      readonly tier: string | undefined;
      readonly overrides: readonly LimitOverride[];
      readonly isBlocked: boolean | undefined;
      readonly durationMillis?: number;
      readonly ifVersion: number | undefined;
    }
  | { readonly type: 'delete'; readonly ifVersion: number | undefined }
  | { readonly type: 'block'; readonly isBlocked: boolean; readonly durationMillis?: number }
  | { readonly type: 'reset' }
  | ({ readonly type: 'set' } & WantedUse);

/** The amount that a key has used under these rules. */
export interface WantedUse {
  readonly used: number;
  readonly ruleIds: readonly string[];
}

export interface SaidOfKey {
  readonly userId: string;
  readonly said: Said;
}

/** The operators' changes in an entry, in order; empty if the entry holds anything else. */
export function loggedCustomers(data: Uint8Array): readonly SaidOfKey[] {
  const entry = new EntryBytes(data);
  const { byte, integer, text } = entry;
  const version = (): number | undefined => {
    const number = integer();
    return number === 0 ? undefined : number - 1;
  };
  const override = (): LimitOverride => {
    const [ruleId, limit, burst] = [text(), integer(), integer()];
    return { ruleId, limit, ...(burst > 0 && { burst }) };
  };
  const block = (): { readonly isBlocked: boolean; readonly durationMillis?: number } => {
    const form = byte();
    return form === ENDS ? { isBlocked: true, durationMillis: integer() } : { isBlocked: form === 1 };
  };
  const put = (): Said => {
    const ifVersion = version();
    const said = byte() === 1 ? block() : { isBlocked: undefined };
    const tier = text();
    const overrides = Array.from({ length: integer() }, override);
    return {
      type: 'put',
      tier: tier === '' ? undefined : tier,
      overrides,
      ...said,
      ifVersion,
    };
  };
  const action = (type: number): Said => {
    if (type === 1) return put();
    if (type === 2) return { type: 'delete', ifVersion: version() };
    if (type === 3) return { type: 'block', ...block() };
    if (type === 5) return { type: 'set', used: integer(), ruleIds: Array.from({ length: integer() }, text) };
    return { type: type === 0 ? 'read' : 'reset' };
  };
  if (entry.length === 0 || byte() !== CUSTOMERS) return [];
  return Array.from({ length: integer() }, () => {
    const type = byte();
    return { userId: text(), said: action(type) };
  });
}
