/** Lets the viewer choose how many of the last minutes the usage figures cover. */
import type { JSX } from 'preact';

/** The spans to choose from, the default first. */
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
