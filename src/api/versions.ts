/**
 * Versions: one number for what nodes say to each other and for what they write into logs, snapshots and databases. A program
 * speaks and reads its own version and at least the one before, so that the nodes of a cluster can be replaced one after the other. What it
 * writes goes by the version of the cluster, which group 0 keeps and only an operator raises.
 */

/** From `min` to `max`, both of them included: whole numbers from 1 to `VERSION_BOUND`. */
export interface VersionRange {
  readonly min: number;
  readonly max: number;
}

/** A byte in the header of every frame. */
export const VERSION_BOUND = 255;
/** What this program speaks and reads. */
export const VERSIONS: VersionRange = { min: 12, max: 14 };
/** The first that can say which versions it speaks, and with which a cluster can be told to go on. */
export const VERSION_NEGOTIATED = 13;
/** The first in which nodes have labels, and copies are placed by them. */
export const VERSION_LABELLED = 14;
/** Of who says nothing of versions: a node, or a cluster that was created by such. */
export const VERSION_UNSAID = 12;
export const UNSAID: VersionRange = { min: VERSION_UNSAID, max: VERSION_UNSAID };

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

function rangeText({ min, max }: VersionRange): string {
  return min === max ? String(max) : `${min} to ${max}`;
}
