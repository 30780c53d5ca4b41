/** What is known of where a node stands, for the placement of copies: its labels, and their check wherever they are given. */
import { InvalidFieldError } from './fields.ts';

/** Text of 1 to `LABEL_CHARACTERS_MAX` characters, as `isLabel` has it; absent: nothing is known. */
export interface NodeLabels {
  /** What fails together without being one machine: a data centre, a rack, a zone of a cloud. */
  readonly zone?: string;
  /** The machine: nodes with the same one hold no copies of the same partition where there are enough others. */
  readonly host?: string;
}

export const LABEL_CHARACTERS_MAX = 128;
export const LABEL = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
export const LABEL_BOUND =
  `must be 1 to ${LABEL_CHARACTERS_MAX} letters, digits, dots, dashes and underscores, ` +
  'the first of them a letter or digit';

/** Whether `value` may be a label. */
export function isLabel(value: unknown): value is string {
  return typeof value === 'string' && value.length <= LABEL_CHARACTERS_MAX && LABEL.test(value);
}

/** Of something that may have more, the labels and nothing else. */
export function labelsOf({ zone, host }: NodeLabels): NodeLabels {
  return { ...(zone !== undefined && { zone }), ...(host !== undefined && { host }) };
}

/** @throws InvalidFieldError naming the field and its bound */
export function labelAt(value: unknown, field: string): string {
  if (!isLabel(value)) throw new InvalidFieldError(field, LABEL_BOUND);
  return value;
}

/** @throws InvalidFieldError naming the field, below `path`, and its bound */
export function validateLabels(
  { zone, host }: { readonly [Name in keyof NodeLabels]?: unknown },
  path: string,
): NodeLabels {
  return {
    ...(zone !== undefined && { zone: labelAt(zone, `${path}.zone`) }),
    ...(host !== undefined && { host: labelAt(host, `${path}.host`) }),
  };
}
