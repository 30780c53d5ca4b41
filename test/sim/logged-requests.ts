/** The requests of a log entry, read from its bytes as src/limiter/log/batch.ts describes them, by no code of the product. */
import type { Asked } from './id-ledger.ts';

const ALLOW = 5;
/** The same, with refunds among them. */
const REFUNDS = 8;

export function loggedRequests(data: Uint8Array): Asked[] {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  let at = 0;
  const byte = (): number => bytes.readUInt8(at++);
  const integer = (): number => {
    const value = byte();
    return value < 128 ? value : value - 128 + 128 * integer();
  };
  const text = (): string => {
    const length = integer();
    at += length;
    return bytes.toString('utf8', at - length, at);
  };
  const kind = bytes.length === 0 ? 0 : byte();
  if (kind !== ALLOW && kind !== REFUNDS) return [];
  const count = integer();
  const rules = Array.from({ length: integer() }, text);
  return Array.from({ length: count }, () => {
    const has = byte();
    const userId = text();
    if (has & 16)
      return { userId, rule: '', cost: 0, timestampMillis: undefined, requestId: text(), isRefund: true };
    return {
      userId,
      rule: rules[has & 1 ? integer() : 0] ?? '',
      cost: has & 2 ? integer() : 1,
      timestampMillis: has & 4 ? integer() : undefined,
      requestId: has & 8 ? text() : undefined,
    };
  });
}
