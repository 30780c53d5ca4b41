/**
 * The bytes of an entry with customer commands: a kind, a count, then for each command its action (the index in
 * `ACTIONS`), its key and the fields of the action. Such an entry contains nothing else. So every grant is clearly
 * before or after a reset, and the index of the entry can serve as the version of the records it changes.
 */

import { type CustomerAction, type CustomerRequest, invalidInCustomer } from '../../api/customer.ts';
import type { LimitOverride } from '../../api/customer-record.ts';
import { KEY_BYTES_MAX, LIMITS_PER_REQUEST_MAX, RULE_ID_BYTES_MAX } from '../../api/request.ts';
import { FIXED_LIMIT_MAX } from '../../api/rule.ts';
import { assert } from '../assert.ts';
import {
  readBlock,
  readOverride,
  readTermsHead,
  writeBlock,
  writeOverride,
  writeTermsHead,
} from '../record-form.ts';
import type { ByteReader } from '../../bytes/byte-reader.ts';
import { ByteWriter } from '../../bytes/byte-writer.ts';
import { CommandDecodeError } from './command-decode-error.ts';
import { KIND_CUSTOMERS } from './kinds.ts';

/** The maximum number of commands in one entry. */
export const CUSTOMER_REQUESTS_MAX = 4_096;

/** An entry stores the index of an action in this list, so new actions go to the end. */
const ACTIONS = [
  'read',
  'put',
  'delete',
  'block',
  'reset',
  'set',
] as const satisfies readonly CustomerAction['type'][];

const VERSION_MAX = Number.MAX_SAFE_INTEGER;

/** Does the action change a customer record? Two commands of one entry never change the record of the same key. */
export function changesRecord({ type }: CustomerAction): boolean {
  return type !== 'read' && type !== 'reset' && type !== 'set';
}

/**
 * Encodes customer commands.
 *
 * @param requests well-formed, 1 to `CUSTOMER_REQUESTS_MAX`; no two change the record of the same key
 */
export function encodeCustomers(requests: readonly CustomerRequest[]): Uint8Array {
  assert(requests.length > 0 && requests.length <= CUSTOMER_REQUESTS_MAX, '{} requests', requests.length);
  const out = new ByteWriter();
  out.byte(KIND_CUSTOMERS);
  out.integer(requests.length);
  for (const { userId, action } of requests) {
    assert(userId !== '', 'texts are not empty');
    out.byte(ACTIONS.indexOf(action.type));
    out.text(userId, KEY_BYTES_MAX);
    writeAction(out, action);
  }
  return out.take();
}

function writeAction(out: ByteWriter, action: CustomerAction): void {
  switch (action.type) {
    case 'read':
    case 'reset':
      return;
    case 'block':
      writeBlock(out, { isBlocked: action.isBlocked, millis: action.durationMillis });
      return;
    case 'set':
      out.integer(action.used);
      out.integer(action.ruleIds.length);
      for (const ruleId of action.ruleIds) out.text(ruleId, RULE_ID_BYTES_MAX);
      return;
    case 'delete':
      out.integer(versionNumber(action.ifVersion));
      return;
    case 'put':
      out.integer(versionNumber(action.ifVersion));
      out.flag(action.isBlocked !== undefined);
      if (action.isBlocked !== undefined)
        writeBlock(out, { isBlocked: action.isBlocked, millis: action.durationMillis });
      writeTermsHead(out, action);
      for (const override of action.overrides) writeOverride(out, override);
  }
}

/** 0 means any version. */
function versionNumber(ifVersion: number | undefined): number {
  return ifVersion === undefined ? 0 : ifVersion + 1;
}

/** Reads an entry after its kind byte. @throws CommandDecodeError */
export function readCustomers(input: ByteReader): readonly CustomerRequest[] {
  const count = input.integer('number of requests', 1, CUSTOMER_REQUESTS_MAX);
  const requests: CustomerRequest[] = [];
  const changed = new Set<string>();
  for (let i = 0; i < count; i += 1) {
    const type = ACTIONS[input.integer('action', 0, ACTIONS.length - 1)]!;
    const userId = input.text('user id', 1, KEY_BYTES_MAX);
    const request: CustomerRequest = { ask: 'customer', userId, action: readAction(input, type) };
    const invalid = invalidInCustomer(request);
    if (invalid !== undefined) throw new CommandDecodeError(invalid.message);
    if (changesRecord(request.action)) {
      if (changed.has(userId)) throw new CommandDecodeError('two changes of one record');
      changed.add(userId);
    }
    requests.push(request);
  }
  return requests;
}

function readAction(input: ByteReader, type: CustomerAction['type']): CustomerAction {
  switch (type) {
    case 'read':
    case 'reset':
      return { type };
    case 'block':
      return { type, ...readWantedBlock(input) };
    case 'set': {
      const used = input.integer('used', 0, FIXED_LIMIT_MAX);
      const count = input.integer('number of rules', 1, LIMITS_PER_REQUEST_MAX);
      const ruleIds: string[] = [];
      while (ruleIds.length < count) ruleIds.push(input.text('rule id', 1, RULE_ID_BYTES_MAX));
      return { type, ruleIds, used };
    }
    case 'delete':
      return { type, ...readVersion(input) };
    case 'put': {
      const version = readVersion(input);
      const block = input.flag('has a block') ? readWantedBlock(input) : { isBlocked: undefined };
      const { tier, count } = readTermsHead(input);
      const overrides: LimitOverride[] = [];
      while (overrides.length < count) overrides.push(readOverride(input));
      return { type, ...version, ...block, ...(tier !== '' && { tier }), overrides };
    }
  }
}

function readWantedBlock(input: ByteReader): {
  readonly isBlocked: boolean;
  readonly durationMillis?: number;
} {
  const { isBlocked, millis } = readBlock(input);
  return millis === undefined ? { isBlocked } : { isBlocked, durationMillis: millis };
}

function readVersion(input: ByteReader): { readonly ifVersion?: number } {
  const number = input.integer('version of a record', 0, VERSION_MAX);
  return number === 0 ? {} : { ifVersion: number - 1 };
}
