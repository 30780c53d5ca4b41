/** The frames of a change of the cluster on its way to the leader of group 0, and of what became of it. */
import {
  DRAIN_FAILURES,
  type DrainChange,
  type DrainFailure,
  type DrainResult,
  validateDrain,
} from '../api/drain.ts';
import { InvalidFieldError } from '../api/fields.ts';
import {
  LABEL_FAILURES,
  type LabelChange,
  type LabelFailure,
  type LabelResult,
  validateLabelChange,
} from '../api/label-change.ts';
import {
  NODE_CHANGE_FAILURES,
  type NodeChange,
  type NodeChangeFailure,
  type NodeChangeResult,
  validateNodeChange,
} from '../api/node-change.ts';
import {
  type NodeBehind,
  UPGRADE_FAILURES,
  type UpgradeChange,
  type UpgradeFailure,
  type UpgradeRefusal,
  type UpgradeResult,
  validateUpgrade,
} from '../api/upgrade.ts';
import { VERSIONS } from '../api/versions.ts';
import {
  TOKEN_REFUSALS,
  TOKEN_ID,
  type TokenChange,
  type TokenRefusal,
  validateTokenEntry,
} from '../api/token.ts';
import { CommandDecodeError, decodeCommand, encodeRules } from '../limiter/log/command.ts';
import type { RuleTable } from '../limiter/rules.ts';
import { array, Fields, pack, unpack } from './fields.ts';
import { FrameError } from './frame.ts';

/** What nodes hand to the leader of group 0, and are told the end of. */
export type ClusterChange =
  | { readonly type: 'change'; readonly change: NodeChange }
  | { readonly type: 'tokens'; readonly change: TokenChange }
  | { readonly type: 'drain'; readonly change: DrainChange }
  | { readonly type: 'upgrade'; readonly change: UpgradeChange }
  | { readonly type: 'label'; readonly change: LabelChange }
  /** `base`: the version of the rules in group 0 that this replaces, 0 if there are none. */
  | {
      readonly type: 'rules';
      readonly table: RuleTable;
      readonly base: number;
      /** What the table was made of, in JSON; absent: nothing is matched, and callers name the rules of the table. */
      readonly definitions?: string;
    };

/**
 * The first version that knows a change of this type. It is handed to no node that speaks less, which would close the connection,
 * and comes into no log while such a node is a member: it would stop there.
 */
export function versionOfChange(asked: ClusterChange): number {
  // Who is to raise the cluster to a version must speak it.
  return asked.type === 'upgrade' ? asked.change.version : VERSIONS.min;
}

/** What became of it. `version`: of the list of nodes, of the rules, of the tokens, or of the cluster. */
export type ClusterChangeResult =
  | NodeChangeResult
  | {
      readonly ok: false;
      readonly reason: 'rulesChanged' | 'tooFewUndrained' | TokenRefusal | UpgradeRefusal;
    }
  | { readonly ok: false; readonly reason: 'nodesBehind'; readonly behind: readonly NodeBehind[] };

/** Of a change of the nodes: what belongs to other changes says nothing of it. */
export function nodeChangeResult(result: ClusterChangeResult): NodeChangeResult {
  if (result.ok || result.reason === 'notLeader') return result;
  const { reason } = result;
  return { ok: false, reason: isOfNodes(reason) ? reason : 'unknownOutcome' };
}

function isOfNodes(reason: string): reason is Exclude<NodeChangeFailure, 'notLeader'> {
  return reason in NODE_CHANGE_FAILURES;
}

/** Of draining a node, as above. */
export function drainResult(result: ClusterChangeResult): DrainResult {
  if (result.ok) return { ok: true };
  const { reason } = result;
  return { ok: false, reason: isOfDraining(reason) ? reason : 'unknownOutcome' };
}

function isOfDraining(reason: string): reason is DrainFailure {
  return reason in DRAIN_FAILURES;
}

/** Of labelling a node, as above. */
export function labelResult(result: ClusterChangeResult): LabelResult {
  if (result.ok) return { ok: true, version: result.version };
  const { reason } = result;
  return { ok: false, reason: isOfLabels(reason) ? reason : 'unknownOutcome' };
}

function isOfLabels(reason: string): reason is LabelFailure {
  return reason in LABEL_FAILURES;
}

/** Of raising the version, as above. */
export function upgradeResult(result: ClusterChangeResult): UpgradeResult {
  if (result.ok) return { ok: true, version: result.version };
  const { reason } = result;
  if (reason === 'nodesBehind') return { ok: false, reason, behind: result.behind };
  return { ok: false, reason: isOfUpgrade(reason) ? reason : 'unknownOutcome' };
}

function isOfUpgrade(reason: string): reason is UpgradeFailure {
  return reason in UPGRADE_FAILURES;
}

export interface ForwardedChange {
  /** Of the node that asks: its result bears the same. */
  readonly id: number;
  readonly change: ClusterChange;
}

export interface ForwardedResult {
  /** As the change bore it. */
  readonly id: number;
  readonly result: ClusterChangeResult;
}

const TYPES = [
  'change',
  'rules',
  'tokens',
  'drain',
  'upgrade',
  'label',
] as const satisfies readonly ClusterChange['type'][];

const REASONS = [
  'emptyChange',
  'retiredNode',
  'nodeExists',
  'unknownNode',
  'tooFewNodes',
  'tooManyNodes',
  'overloaded',
  'unknownOutcome',
  'notLeader',
  'notMember',
  'rulesChanged',
  ...TOKEN_REFUSALS,
  'tooFewUndrained',
  'nodesBehind',
  'lowerVersion',
  'olderNode',
] as const satisfies readonly (ClusterChangeResult & { readonly ok: false })['reason'][];

export function encodeClusterChange({ id, change }: ForwardedChange): Buffer {
  const type = TYPES.indexOf(change.type);
  // As entries have it: whoever can read those can read this.
  if (change.type === 'rules')
    return pack([id, type, change.base, encodeRules(change.table), change.definitions]);
  if (change.type === 'tokens') return pack([id, type, ...tokenFields(change.change)]);
  if (change.type === 'drain') return pack([id, type, change.change.node, change.change.isDraining]);
  if (change.type === 'upgrade') return pack([id, type, change.change.version]);
  if (change.type === 'label') return pack([id, type, ...labelFields(change.change)]);
  const { add, remove } = change.change;
  const { http, peer } = add ?? {};
  const where = [http?.host, http?.port, peer?.host, peer?.port];
  return pack([id, type, remove, add?.id, ...where, add?.zone, add?.host]);
}

/** @throws FrameError if it is malformed */
export function decodeClusterChange(payload: Uint8Array): ForwardedChange {
  const fields = new Fields(unpack(payload));
  const id = fields.integer('id');
  const type = fields.oneOf(TYPES, 'type');
  if (type === 'change') return { id, change: { type, change: readNodeChange(fields) } };
  if (type === 'tokens') return { id, change: { type, change: readTokenChange(fields) } };
  if (type === 'drain') return { id, change: { type, change: readDrain(fields) } };
  if (type === 'upgrade') return { id, change: { type, change: readUpgrade(fields) } };
  if (type === 'label') return { id, change: { type, change: readLabels(fields) } };
  const base = fields.integer('base');
  const table = readRules(fields.bytes('rules'));
  const definitions = fields.optionalString('definitions');
  return { id, change: { type, base, table, ...(definitions !== undefined && { definitions }) } };
}

function readNodeChange(fields: Fields): NodeChange {
  const remove = fields.optionalInteger('remove');
  const node = fields.optionalInteger('add');
  const http = { host: fields.optionalString('http.host'), port: fields.optionalInteger('http.port') };
  const peer = { host: fields.optionalString('peer.host'), port: fields.optionalInteger('peer.port') };
  const [zone, host] = ['zone', 'host'].map((name) => fields.optionalString(name));
  const labels = { ...(zone !== undefined && { zone }), ...(host !== undefined && { host }) };
  try {
    return validateNodeChange({
      add: node === undefined ? node : { id: node, http, peer, ...labels },
      remove,
    });
  } catch (error) {
    if (error instanceof InvalidFieldError) throw new FrameError(`change of the nodes: ${error.message}`);
    throw error;
  }
}

/** Which token goes, or null and the one that comes. */
function tokenFields(change: TokenChange): readonly unknown[] {
  if ('revoke' in change) return [change.revoke, change.canOpen];
  const { id, role, name, sha256, createdMillis } = change.create;
  return [null, id, role, name, sha256, createdMillis];
}

function readTokenChange(fields: Fields): TokenChange {
  const revoke = fields.optionalString('revoke');
  if (revoke !== undefined) {
    if (!TOKEN_ID.test(revoke)) throw new FrameError('change of the tokens: revoke is no id of a token');
    return { revoke, canOpen: fields.boolean('canOpen') };
  }
  const [id, role, name, sha256] = ['id', 'role', 'name', 'sha256'].map((field) => fields.string(field));
  const createdMillis = fields.optionalInteger('createdMillis');
  try {
    return { create: validateTokenEntry({ id, role, name, sha256, createdMillis }, 'create') };
  } catch (error) {
    if (error instanceof InvalidFieldError) throw new FrameError(`change of the tokens: ${error.message}`);
    throw error;
  }
}

function readDrain(fields: Fields): DrainChange {
  try {
    return validateDrain({ node: fields.integer('node'), isDraining: fields.boolean('isDraining') });
  } catch (error) {
    if (error instanceof InvalidFieldError) throw new FrameError(`draining a node: ${error.message}`);
    throw error;
  }
}

/** A label that stays is null, one that is taken away is empty. */
function labelFields({ node, zone, host }: LabelChange): readonly unknown[] {
  return [node, ...[zone, host].map((label) => (label === undefined ? null : (label ?? '')))];
}

function readLabels(fields: Fields): LabelChange {
  const node = fields.integer('node');
  const [zone, host] = ['zone', 'host'].map((name) => {
    const label = fields.optionalString(name);
    return label === '' ? null : label;
  });
  try {
    return validateLabelChange({ node, zone, host });
  } catch (error) {
    if (error instanceof InvalidFieldError) throw new FrameError(`labelling a node: ${error.message}`);
    throw error;
  }
}

function readUpgrade(fields: Fields): UpgradeChange {
  try {
    return validateUpgrade({ version: fields.integer('version') });
  } catch (error) {
    if (error instanceof InvalidFieldError) throw new FrameError(`upgrade: ${error.message}`);
    throw error;
  }
}

function readRules(bytes: Uint8Array): RuleTable {
  try {
    const command = decodeCommand(bytes);
    if (command.type === 'rules') return command.table;
  } catch (error) {
    if (!(error instanceof CommandDecodeError)) throw error;
    throw new FrameError(`change of the rules: ${error.message}`);
  }
  throw new FrameError('change of the rules: holds something else');
}

export function encodeChangeResult({ id, result }: ForwardedResult): Buffer {
  if (result.ok) return pack([id, true, result.version]);
  const reason = REASONS.indexOf(result.reason);
  if (result.reason === 'nodesBehind')
    return pack([id, false, reason, 0, result.behind.map(({ node, speaks }) => [node, speaks ?? null])]);
  return pack([id, false, reason, result.reason === 'notLeader' ? result.leader : 0]);
}

/** @throws FrameError if it is malformed */
export function decodeChangeResult(payload: Uint8Array): ForwardedResult {
  const fields = new Fields(unpack(payload));
  const id = fields.integer('id');
  if (fields.boolean('ok')) return { id, result: { ok: true, version: fields.integer('version') } };
  const reason = fields.oneOf(REASONS, 'reason');
  const leader = fields.integer('leader');
  if (reason === 'nodesBehind') return { id, result: { ok: false, reason, behind: readBehind(fields) } };
  return { id, result: reason === 'notLeader' ? { ok: false, reason, leader } : { ok: false, reason } };
}

function readBehind(fields: Fields): NodeBehind[] {
  return array(fields.next('behind'), 'behind').map((row) => {
    const each = new Fields(row);
    const node = each.integer('node');
    const speaks = each.optionalInteger('speaks');
    return speaks === undefined ? { node } : { node, speaks };
  });
}
