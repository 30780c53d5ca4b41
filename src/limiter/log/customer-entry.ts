/**
 * An entry of what operators say of keys: a kind, a count, then for each what is done (its place in `ACTIONS`), the key, and what
 * belongs to that. It decides nothing. Such entries hold nothing else: so a reset stands between all grants before and after it,
 * and the index of the entry is the version of the records that it changes.
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

/** The most requests of one such entry. */
export const CUSTOMER_REQUESTS_MAX = 4_096;

/** In an entry the place of an action in here is its number: new ones go last. */
const ACTIONS = [
  'read',
  'put',
  'delete',
  'block',
  'reset',
  'set',
] as const satisfies readonly CustomerAction['type'][];

const VERSION_MAX = Number.MAX_SAFE_INTEGER;

/** Of different ones, those that change a record change the records of different keys. */
export function changesRecord({ type }: CustomerAction): boolean {
  return type !== 'read' && type !== 'reset' && type !== 'set';
}

/** @param requests well-formed, 1 to `CUSTOMER_REQUESTS_MAX`; no two change the record of one key */
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

/** 0 stands for any. */
function versionNumber(ifVersion: number | undefined): number {
  return ifVersion === undefined ? 0 : ifVersion + 1;
}

/** Behind the kind. @throws CommandDecodeError */
export function readCustomers(input: ByteReader): readonly CustomerRequest[] {
  const count = input.integer('number of requests', 1, CUSTOMER_REQUESTS_MAX);
  const requests: CustomerRequest[] = [];
  const changed = new Set<string>();
  for (let i = 0; i < count; i += 1) {
    const type = ACTIONS[input.integer('what is done', 0, ACTIONS.length - 1)]!;
    const userId = input.text('user id', 1, KEY_BYTES_MAX);
    const request: CustomerRequest = { ask: 'customer', userId, action: readAction(input, type) };
    const invalid = invalidInCustomer(request);
    if (invalid !== undefined) throw new CommandDecodeError(invalid.message);
    if (changesRecord(request.action)) {
      if (changed.has(userId)) throw new CommandDecodeError('the record of a key twice');
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
      const used = input.integer('what is used', 0, FIXED_LIMIT_MAX);
      const count = input.integer('number of rules', 1, LIMITS_PER_REQUEST_MAX);
      const ruleIds: string[] = [];
      while (ruleIds.length < count) ruleIds.push(input.text('rule id', 1, RULE_ID_BYTES_MAX));
      return { type, ruleIds, used };
    }
    case 'delete':
      return { type, ...readVersion(input) };
    case 'put': {
      const version = readVersion(input);
      const block = input.flag('says of a block') ? readWantedBlock(input) : { isBlocked: undefined };
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
