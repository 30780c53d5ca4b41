/** The labels that say where a node runs (zone and host), and their check. The placement of copies uses them. */
import { InvalidFieldError } from './fields.ts';

/** Each label is text of 1 to `LABEL_CHARACTERS_MAX` characters (see `isLabel`). Absent: not known. */
export interface NodeLabels {
  /** A unit that fails together but is not one machine: a data centre, a rack, a cloud zone. */
  readonly zone?: string;
  /** The machine. Nodes with the same host never hold copies of one partition if there are enough other hosts. */
  readonly host?: string;
}

/** The longest label, in characters. */
export const LABEL_CHARACTERS_MAX = 128;
/** The form of a label. */
export const LABEL = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
/** The rule for labels, as error messages state it. */
export const LABEL_BOUND =
  `must be 1 to ${LABEL_CHARACTERS_MAX} letters, digits, dots, dashes and underscores, ` +
  'starting with a letter or digit';

/** True if `value` is a valid label. */
export function isLabel(value: unknown): value is string {
  return typeof value === 'string' && value.length <= LABEL_CHARACTERS_MAX && LABEL.test(value);
}

/** Only the labels of an object that may have other fields. */
export function labelsOf({ zone, host }: NodeLabels): NodeLabels {
  return { ...(zone !== undefined && { zone }), ...(host !== undefined && { host }) };
}

/** Checks one label. @throws InvalidFieldError naming the field and its bound */
export function labelAt(value: unknown, field: string): string {
  if (!isLabel(value)) throw new InvalidFieldError(field, LABEL_BOUND);
  return value;
}

/** Checks the labels of a node. @throws InvalidFieldError naming the field, below `path`, and its bound */
export function validateLabels(
  { zone, host }: { readonly [Name in keyof NodeLabels]?: unknown },
  path: string,
): NodeLabels {
  return {
    ...(zone !== undefined && { zone: labelAt(zone, `${path}.zone`) }),
    ...(host !== undefined && { host: labelAt(host, `${path}.host`) }),
  };
}
