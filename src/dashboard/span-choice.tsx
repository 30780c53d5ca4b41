/** Which of the last minutes of the usage figures are added up. */
import type { JSX } from 'preact';

export const SPANS = [
  { minutes: 60, label: 'hour' },
  { minutes: 360, label: '6 hours' },
  { minutes: 1_440, label: 'day' },
] as const;

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
