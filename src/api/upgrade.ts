/**
 * Raising the version of a cluster, as every door takes it: the change, its check, and what becomes of it, with texts and statuses
 * in one table. Group 0 keeps the version; its leader raises it only while every node is connected and speaks the new one.
 */
import { InvalidFieldError } from './fields.ts';
import { NODE_CHANGE_FAILURES } from './node-change.ts';
import { rangeText, VERSIONS } from './versions.ts';

export interface UpgradeChange {
  /** What the cluster is to be at, see `VERSIONS`. */
  readonly version: number;
}

/** A node of the cluster that does not speak a version, as far as is known. */
export interface NodeBehind {
  readonly node: number;
  /** The highest that it speaks; absent: it is not connected. */
  readonly speaks?: number;
}

/** Why the version is not raised, or may not be. */
export const UPGRADE_FAILURES = {
  /** Some node is not connected, or speaks less. */
  nodesBehind: { status: 409, text: 'not every node of the cluster is known to speak this version' },
  /** The cluster is at a higher one. */
  lowerVersion: {
    status: 409,
    text: 'the cluster is at a higher version, and there is no way back; restore a backup into a new cluster instead',
  },
  notMember: NODE_CHANGE_FAILURES.notMember,
  overloaded: NODE_CHANGE_FAILURES.overloaded,
  unknownOutcome: NODE_CHANGE_FAILURES.unknownOutcome,
  notLeader: NODE_CHANGE_FAILURES.notLeader,
} as const satisfies Readonly<Record<string, { readonly status: 409 | 503; readonly text: string }>>;

export type UpgradeFailure = keyof typeof UPGRADE_FAILURES;
/** Group 0 decided against it. */
export type UpgradeRefusal = 'lowerVersion';

/** `ok`: it is replicated. A repetition changes nothing. */
export type UpgradeResult =
  | { readonly ok: true; readonly version: number }
  | {
      readonly ok: false;
      readonly reason: UpgradeFailure;
      /** Who is: with `nodesBehind`. */
      readonly behind?: readonly NodeBehind[];
    };

/** What `nodesBehind` says, by name. */
export function nodesBehindText(behind: readonly NodeBehind[], version: number): string {
  if (behind.length === 0) return UPGRADE_FAILURES.nodesBehind.text;
  const each = behind.map(({ node, speaks }) =>
    speaks === undefined ? `node ${node} is not connected` : `node ${node} speaks ${speaks}`,
  );
  return `${each.join(', ')}: start it with a quorate that speaks version ${version}, or remove it from the cluster, and ask again`;
}

/** @throws InvalidFieldError naming the field and its bound */
export function validateUpgrade({
  version,
}: {
  readonly [Field in keyof UpgradeChange]?: unknown;
}): UpgradeChange {
  const { min, max } = VERSIONS;
  if (typeof version !== 'number' || !Number.isSafeInteger(version) || version < min || version > max)
    throw new InvalidFieldError('version', `must be a version that this node speaks: ${rangeText(VERSIONS)}`);
  return { version };
}
