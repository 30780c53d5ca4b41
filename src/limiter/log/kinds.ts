/** The kinds of commands, as the first byte of a log entry says them. A new meaning needs a new number. */

export const KIND_ALLOW = 5;
export const KIND_SWEEP = 7;
/** As `KIND_ALLOW`, and some of the rows are refunds. */
export const KIND_REFUNDS = 8;
export const KIND_RULES = 9;
/** As `KIND_ALLOW`, and some requests are under several limits, or were matched by rules. */
export const KIND_JOINT = 10;
/** As `KIND_JOINT`, and some of the rows are refunds. */
export const KIND_JOINT_REFUNDS = 11;

/** What operators say of keys, and nothing else. */
export const KIND_CUSTOMERS = 12;
/** As `KIND_JOINT`, and some requests count only if the record of a key is the one that they were matched with. */
export const KIND_GUARDED = 13;
/** As `KIND_GUARDED`, and some of the rows are refunds. */
export const KIND_GUARDED_REFUNDS = 14;

/** What happened before is not all known. See `LostHistory`. */
export const KIND_HISTORY_LOST = 20;
/** The group runs again after that. */
export const KIND_HISTORY_BEGINS = 21;

export type BatchKind =
  | typeof KIND_ALLOW
  | typeof KIND_REFUNDS
  | typeof KIND_JOINT
  | typeof KIND_JOINT_REFUNDS
  | typeof KIND_GUARDED
  | typeof KIND_GUARDED_REFUNDS;

/** May some requests of such a batch be under several limits, or have been matched by rules? */
export function mayBeJoint(kind: BatchKind): boolean {
  return kind !== KIND_ALLOW && kind !== KIND_REFUNDS;
}

/** Of what such an entry has at least one. */
export function kindOf(has: {
  readonly refunds: boolean;
  readonly joint: boolean;
  readonly guarded: boolean;
}): BatchKind {
  if (has.guarded) return has.refunds ? KIND_GUARDED_REFUNDS : KIND_GUARDED;
  if (has.joint) return has.refunds ? KIND_JOINT_REFUNDS : KIND_JOINT;
  return has.refunds ? KIND_REFUNDS : KIND_ALLOW;
}
