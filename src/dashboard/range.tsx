/** Lets the viewer choose the time range of the overview, and the minutes that the usage figures cover. */
import type { JSX } from 'preact';

/** A time range that ends now. */
export interface Range {
  readonly minutes: number;
  readonly label: string;
  /** Completes "the last …". */
  readonly words: string;
}

/** The ranges to choose from, the default first. */
export const RANGES: readonly [Range, ...Range[]] = [
  { minutes: 5, label: '5 min', words: '5 minutes' },
  { minutes: 60, label: '1 h', words: 'hour' },
  { minutes: 360, label: '6 h', words: '6 hours' },
  { minutes: 1_440, label: '24 h', words: '24 hours' },
];

/** Radio buttons for the range. */
export function RangeChoice({
  range,
  choose,
}: {
  readonly range: Range;
  readonly choose: (range: Range) => void;
}): JSX.Element {
  return (
    <fieldset class="choice ranges">
      <legend>The last</legend>
      {RANGES.map((each) => (
        <label key={each.minutes}>
          <input
            type="radio"
            name="range"
            checked={each.minutes === range.minutes}
            onChange={() => choose(each)}
          />
          {each.label}
        </label>
      ))}
    </fieldset>
  );
}

/** How many of the last minutes the usage figures may cover, the default first. */
export const SPANS = [
  { minutes: 60, label: 'hour' },
  { minutes: 360, label: '6 hours' },
  { minutes: 1_440, label: 'day' },
] as const;

/** Radio buttons for the span. */
export function SpanChoice({
  minutes,
  changed,
}: {
  readonly minutes: number;
  readonly changed: (minutes: number) => void;
}): JSX.Element {
  return (
    <fieldset class="choice">
      <legend>The last</legend>
      {SPANS.map((each) => (
        <label key={each.minutes}>
          <input
            type="radio"
            name="minutes"
            checked={each.minutes === minutes}
            onChange={() => changed(each.minutes)}
          />
          {each.label}
        </label>
      ))}
    </fieldset>
  );
}
