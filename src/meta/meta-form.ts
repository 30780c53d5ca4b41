/**
 * Encodes the commands and the record of group 0 as JSON: they are rare and small, and JSON in a log is easy to read.
 * The bytes come from a disk or another node, so every shape is checked. Nothing is decided here.
 */
import {
  validateDrain,
  validateLabelChange,
  validateNodeChange,
  validateUpgrade,
} from '../api/cluster-change.ts';
import { InvalidFieldError } from '../api/fields.ts';
import { isLabel } from '../api/node-address.ts';
import { TOKEN_ID, validateTokenEntry } from '../api/token.ts';
import { VERSIONS } from '../api/versions.ts';
import { InvalidRuleError, validateRuleTable } from '../limiter/rules.ts';
import type { MetaChange, MetaCommand, MetaRecord, MetaState } from './cluster-state.ts';
import { isPlacement } from './placement-text.ts';

/** The bytes are not a command or record of group 0. In a committed entry this means damage: the node must stop. */
export class MetaDecodeError extends Error {
  readonly code = 'META_DECODE';

  constructor(what: string, problem: string) {
    super(`not a ${what} of group 0: ${problem}`);
    this.name = 'MetaDecodeError';
  }
}

/**
 * The version of the cluster is higher than this program supports, so it cannot read the rest. The node must stop, and
 * be started with a newer program.
 */
export class NewerClusterError extends Error {
  readonly code = 'NEWER_CLUSTER';

  constructor(version: number) {
    super(
      `the cluster was raised to version ${version}, and this program reads no version above ${VERSIONS.max}: ` +
        'start this node with a newer quorate; there is no way back to this one',
    );
    this.name = 'NewerClusterError';
  }
}

/** Encodes a command or a record as UTF-8 JSON. `null` is the record before the first command. */
export function encodeMeta(value: MetaCommand | MetaRecord | null): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

/**
 * Decodes a committed command.
 *
 * @throws MetaDecodeError if it is invalid
 * @throws NewerClusterError if only a newer program can read it
 */
export function decodeMetaCommand(data: Uint8Array): MetaCommand {
  const value = parsed(new TextDecoder().decode(data), 'command');
  if (isObject(value)) {
    refuseNewer(value['clusterVersion']);
    if (value['type'] === 'upgrade' && isObject(value['change'])) refuseNewer(value['change']['version']);
  }
  if (!isCommand(value)) throw new MetaDecodeError('command', 'a field has a wrong type or value');
  return value as MetaCommand;
}

/** Decodes a change that another node forwarded; undefined if it is invalid. */
export function maybeChange(data: Uint8Array): MetaChange | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(data));
    return isObject(value) && isChangeCommand(value) ? (value as MetaChange) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Whether a log with this command could be read again. */
export function isReadable(command: MetaCommand): boolean {
  return isCommand(JSON.parse(JSON.stringify(command)));
}

/**
 * Decodes the record from the chunks of a snapshot; undefined before the first command.
 *
 * @throws MetaDecodeError if it is invalid
 * @throws NewerClusterError if only a newer program can read it
 */
export function decodeMetaRecord(chunks: readonly Uint8Array[]): MetaRecord | undefined {
  const decoder = new TextDecoder();
  const text = chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join('') + decoder.decode();
  const value = parsed(text, 'record');
  if (value === null) return undefined;
  if (isObject(value) && isObject(value['state'])) refuseNewer(value['state']['clusterVersion']);
  if (!isRecord(value)) throw new MetaDecodeError('record', 'a field has a wrong type or value');
  return value as MetaRecord;
}

/** Checked before anything else, because the data of a newer program may have any shape. */
function refuseNewer(version: unknown): void {
  if (Number.isSafeInteger(version) && Number(version) > VERSIONS.max)
    throw new NewerClusterError(Number(version));
}

function parsed(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new MetaDecodeError(what, String(error));
  }
}

type Fields = Readonly<Record<string, unknown>>;
type Check = (value: unknown) => boolean;

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

const isAbsentOr =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const isListOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const isText: Check = (value) => typeof value === 'string';
const isHostPort: Check = (value) => isObject(value) && isText(value['host']) && isCount(value['port']);

const isMember: Check = (value) =>
  isObject(value) &&
  isCount(value['id']) &&
  isAbsentOr(isText)(value['incarnation']) &&
  isAbsentOr(isHostPort)(value['http']) &&
  isAbsentOr(isHostPort)(value['peer']) &&
  isAbsentOr((draining) => draining === true)(value['draining']) &&
  isAbsentOr(isLabel)(value['zone']) &&
  isAbsentOr(isLabel)(value['host']);
const isIntroduction: Check = (value) => isMember(value) && isObject(value) && isText(value['incarnation']);
const isAddress: Check = (value) =>
  isMember(value) && isObject(value) && isHostPort(value['http']) && isHostPort(value['peer']);

/** Accepts the values for which `validate` does not throw `Invalid`. */
const isSound =
  (validate: (value: unknown) => unknown, Invalid: new (...args: never[]) => Error): Check =>
  (value) => {
    try {
      validate(value);
      return true;
    } catch (error) {
      if (error instanceof Invalid) return false;
      throw error;
    }
  };
const isTable = isSound(validateRuleTable, InvalidRuleError);
const isToken = isSound((value) => validateTokenEntry(value, 'token'), InvalidFieldError);
const isTokenTable: Check = (value) =>
  isObject(value) && isCount(value['version']) && isListOf(isToken)(value['entries']);
const isTokenId: Check = (value) => typeof value === 'string' && TOKEN_ID.test(value);
const isTokenChange: Check = (value) =>
  isObject(value) &&
  ('create' in value
    ? isToken(value['create'])
    : isTokenId(value['revoke']) && typeof value['canOpen'] === 'boolean');

const isVersion: Check = (value) => isCount(value) && Number(value) >= VERSIONS.min;
const isChange =
  (validate: (change: Fields) => unknown) =>
  ({ change }: Fields): boolean =>
    isObject(change) && isSound(() => validate(change), InvalidFieldError)(change);

/** The shape of each type of change. */
const CHANGES: Readonly<Record<MetaChange['type'], (command: Fields) => boolean>> = {
  nodes: isChange(validateNodeChange),
  drain: isChange(validateDrain),
  label: isChange(validateLabelChange),
  upgrade: isChange(validateUpgrade),
  tokens: ({ change }) => isTokenChange(change),
  rules: ({ table, base, definitions, document, matchedBefore }) =>
    isTable(table) && isCount(base) && [definitions, document, matchedBefore].every(isAbsentOr(isText)),
};

function isCommand(value: unknown): boolean {
  if (!isObject(value)) return false;
  switch (value['type']) {
    case 'create':
      return (
        isListOf(isIntroduction)(value['nodes']) &&
        isCount(value['replicas']) &&
        isCount(value['partitions']) &&
        isTable(value['rules']) &&
        isVersion(value['clusterVersion'])
      );
    case 'introduce':
      return isIntroduction(value['node']);
    case 'settled':
      return isCount(value['version']);
    default:
      return isChangeCommand(value);
  }
}

function isChangeCommand(command: Fields): boolean {
  const { type } = command;
  return isText(type) && Object.hasOwn(CHANGES, String(type)) && CHANGES[type as MetaChange['type']](command);
}

function isRecord(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { state, replicas, added } = value;
  return (
    isState(state) &&
    isCount(replicas) &&
    isListOf(isAddress)(added) &&
    arePlacements(state as MetaState, replicas as number)
  );
}

/** Whether each placement has complete rows and only names nodes of its version. */
function arePlacements(state: MetaState, replicas: number): boolean {
  const nodes = state.nodes.map(({ id }) => id);
  return (
    isPlacement(state.placement, nodes, replicas) &&
    isPlacement(state.settledPlacement, state.settledNodes, replicas)
  );
}

const isMatchedBefore: Check = (value) =>
  isObject(value) && isText(value['definitions']) && isCount(value['horizonMillis']);

function isState(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { version, settledVersion, nodes, settledNodes, leaving, retired, rules, definitions } = value;
  const { placement, settledPlacement, tokens, clusterVersion, matchedBefore, document } = value;
  return (
    [version, settledVersion].every(isCount) &&
    [nodes, leaving].every(isListOf(isMember)) &&
    [settledNodes, retired].every(isListOf(isCount)) &&
    [placement, settledPlacement].every(isText) &&
    isAbsentOr(isTokenTable)(tokens) &&
    isTable(rules) &&
    [definitions, document].every(isAbsentOr(isText)) &&
    isAbsentOr(isListOf(isMatchedBefore))(matchedBefore) &&
    isVersion(clusterVersion)
  );
}
