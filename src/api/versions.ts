/**
 * Versions: one number for what nodes say to each other and for what they write into logs, snapshots and databases. A program
 * speaks and reads its own version and, once there is a second one, at least the one before, so that the nodes of a cluster can be
 * replaced one after the other. What it writes goes by the version of the cluster, which group 0 keeps and only an operator raises.
 */

/** From `min` to `max`, both of them included: whole numbers from 1 to `VERSION_BOUND`. */
export interface VersionRange {
  readonly min: number;
  readonly max: number;
}

/** A byte in the header of every frame. */
export const VERSION_BOUND = 255;
/** What this program speaks and reads. */
export const VERSIONS: VersionRange = { min: 1, max: 1 };

/** The one that two nodes use with each other: the highest that both speak. Undefined: there is none. */
export function agreedVersion(a: VersionRange, b: VersionRange): number | undefined {
  const version = Math.min(a.max, b.max);
  return version < Math.max(a.min, b.min) ? undefined : version;
}

interface Speaker {
  readonly node: number;
  readonly speaks: VersionRange;
}

/** For people, of two nodes that have no version in common: which one to replace, and by what. */
export function noCommonVersionText(a: Speaker, b: Speaker): string {
  const [older, newer] = a.speaks.max < b.speaks.max ? [a, b] : [b, a];
  return (
    `node ${older.node} speaks version ${rangeText(older.speaks)}, and node ${newer.node} of this cluster ` +
    `${rangeText(newer.speaks)}: start node ${older.node} with a newer quorate, ` +
    'for after `quorate upgrade finish` there is no way back to a version of before'
  );
}

/** For people. */
export function rangeText({ min, max }: VersionRange): string {
  return min === max ? String(max) : `${min} to ${max}`;
}
