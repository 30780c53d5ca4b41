/**
 * Parses the operators' changes in a log entry from its bytes, as src/limiter/log/customer-entry.ts describes them,
 * without the code of the product.
 */
import type { LimitOverride } from '../../src/api/customer-record.ts';
import { EntryBytes } from './entry-bytes.ts';

const CUSTOMERS = 4;
const ENDS = 2;

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

/** In order; empty if the entry holds anything else. */
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
