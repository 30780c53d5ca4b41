/** The units that limits are stated in, by their numbers in the protocol. Pure. */

export interface Unit {
  readonly number: number;
  readonly name: string;
  readonly millis: number;
}

export const UNKNOWN_UNIT: Unit = { number: 0, name: 'UNKNOWN', millis: 0 };

const DAY_MILLIS = 86_400_000;
/** Requests may state all but the last, which only answers have. A month has 30 days and a year 365. */
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

/** That requests may state by its name or its number; undefined: it is none. */
export function requestUnit(nameOrNumber: string | number): Unit | undefined {
  const unit = UNITS.find(({ name, number }) => name === nameOrNumber || number === nameOrNumber);
  return unit !== undefined && unit.number <= REQUEST_UNIT_MAX ? unit : undefined;
}

/** Of a limit that answers tell; `UNKNOWN_UNIT` where its window is none of them. */
export function unitOf(windowMillis: number): Unit {
  return UNITS.find(({ millis }) => millis === windowMillis) ?? UNKNOWN_UNIT;
}
