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

export type BatchKind =
  | typeof KIND_ALLOW
  | typeof KIND_REFUNDS
  | typeof KIND_JOINT
  | typeof KIND_JOINT_REFUNDS;

/** Of what such an entry has at least one. */
export function kindOf(has: { readonly refunds: boolean; readonly joint: boolean }): BatchKind {
  if (has.joint) return has.refunds ? KIND_JOINT_REFUNDS : KIND_JOINT;
  return has.refunds ? KIND_REFUNDS : KIND_ALLOW;
}
