/** The time units of Envoy's rate limit protocol. Pure. */

/** One unit. */
export interface Unit {
  readonly number: number;
  readonly name: string;
  readonly millis: number;
}

/** The unit of a window that is none of the others. */
export const UNKNOWN_UNIT: Unit = { number: 0, name: 'UNKNOWN', millis: 0 };

const DAY_MILLIS = 86_400_000;
/** Requests may use all but the last one, which only responses have. A month has 30 days and a year 365. */
const UNITS: readonly Unit[] = [
  UNKNOWN_UNIT,
  { number: 1, name: 'SECOND', millis: 1_000 },
  { number: 2, name: 'MINUTE', millis: 60_000 },
  { number: 3, name: 'HOUR', millis: 3_600_000 },
  { number: 4, name: 'DAY', millis: DAY_MILLIS },
  { number: 5, name: 'MONTH', millis: 30 * DAY_MILLIS },
  { number: 6, name: 'YEAR', millis: 365 * DAY_MILLIS },
  { number: 7, name: 'WEEK', millis: 7 * DAY_MILLIS },
];
const REQUEST_UNIT_MAX = 6;

/** The unit of a request, by its name or number. Undefined: there is no such unit for requests. */
export function requestUnit(nameOrNumber: string | number): Unit | undefined {
  const unit = UNITS.find(({ name, number }) => name === nameOrNumber || number === nameOrNumber);
  return unit !== undefined && unit.number <= REQUEST_UNIT_MAX ? unit : undefined;
}

/** The unit of a limit in a response; `UNKNOWN_UNIT` if its window is no unit. */
export function unitOf(windowMillis: number): Unit {
  return UNITS.find(({ millis }) => millis === windowMillis) ?? UNKNOWN_UNIT;
}
