/**
 * Versions: one number for the messages between nodes and for what they write into logs, snapshots and databases. A
 * program reads its own version and, once there is a second one, at least the one before, so that nodes can be
 * replaced one after the other. It writes in the version of the cluster, which group 0 keeps and only an operator
 * raises.
 */

/** The versions from `min` to `max`, both included: integers from 1 to `VERSION_BOUND`. */
export interface VersionRange {
  readonly min: number;
  readonly max: number;
}

/** The largest version: it is one byte in the header of every message. */
export const VERSION_BOUND = 255;
/** The versions that this program reads and speaks. */
export const VERSIONS: VersionRange = { min: 1, max: 1 };

/** The version that two nodes use with each other: the highest that both speak. Undefined if there is none. */
export function agreedVersion(a: VersionRange, b: VersionRange): number | undefined {
  const version = Math.min(a.max, b.max);
  return version < Math.max(a.min, b.min) ? undefined : version;
}

interface Speaker {
  readonly node: number;
  readonly speaks: VersionRange;
}

/** The error message for two nodes that have no version in common: it says which node to replace. */
export function noCommonVersionText(a: Speaker, b: Speaker): string {
  const [older, newer] = a.speaks.max < b.speaks.max ? [a, b] : [b, a];
  return (
    `node ${older.node} speaks version ${rangeText(older.speaks)}, and node ${newer.node} of this cluster ` +
    `${rangeText(newer.speaks)}: start node ${older.node} with a newer quorate, ` +
    'because after `quorate upgrade finish` there is no way back to an older version'
  );
}

/** A range as text, such as `3` or `2 to 3`. */
export function rangeText({ min, max }: VersionRange): string {
  return min === max ? String(max) : `${min} to ${max}`;
}
