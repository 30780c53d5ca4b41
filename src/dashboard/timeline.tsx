/**
 * Draws the windows of one key on a time axis that starts now: what is left, when a request fits, and when the whole
 * limit is free.
 */
import type { JSX } from 'preact';
import { ScrollTable } from './cluster-tables.tsx';
import type { KeyLimit } from './key-status.ts';
import { span, wholeNumber } from './words.ts';

const WIDTH = 1_000;
const HEIGHT = 56;
const TOP = 10;
const BAR = 22;
/** A partition widens its windows by less than this factor. */
const WIDER = 1.01;

/** How long the rule denies, or a shadow rule would. */
function fitInWords({ limit, retryAfterMillis, isShadow }: KeyLimit): string {
  if (retryAfterMillis === undefined) return limit === 0 ? 'nothing ever fits' : 'a request fits now';
  return `${isShadow ? 'would have denied' : 'denied'} for ${span(retryAfterMillis)}`;
}

function Row({ limit: status }: { readonly limit: KeyLimit }): JSX.Element {
  const { rule, limit, windowMillis, remaining, resetMillis, retryAfterMillis } = status;
  // A window may be a little wider than its name says, and a token bucket may take longer than the window to fill.
  const length = resetMillis > windowMillis * WIDER ? resetMillis : windowMillis;
  const x = (millis: number): number => (WIDTH * Math.min(millis, length)) / length;
  const left = limit === 0 ? 0 : Math.min(1, remaining / limit);
  return (
    <li>
      <p class="window-name">
        <strong>{rule}</strong>
        <span>
          {wholeNumber(remaining)} left of {wholeNumber(limit)} in {span(windowMillis)}
        </span>
      </p>
      <svg class="window" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        <rect class="track" x={0} y={TOP} width={WIDTH} height={BAR} />
        <rect class="counting" x={0} y={TOP} width={x(resetMillis)} height={BAR} />
        <rect class="left" x={0} y={TOP + BAR + 6} width={WIDTH * left} height={6} />
        {retryAfterMillis !== undefined && (
          <rect class="denied-until" x={0} y={TOP} width={Math.max(2, x(retryAfterMillis))} height={BAR} />
        )}
      </svg>
      <p class="window-ends">
        <span>now</span>
        <span>
          {fitInWords(status)}
          {resetMillis > 0 && `, all free in ${span(resetMillis)}`}
        </span>
        <span>{span(length)}</span>
      </p>
    </li>
  );
}

/** Explains the bars. The page shows it once, below all timelines. */
export function TimelineLegend({ limits }: { readonly limits: readonly KeyLimit[] }): JSX.Element | null {
  if (limits.length === 0) return null;
  const hasEnforced = limits.some(({ isShadow }) => !isShadow);
  const hasShadow = limits.some(({ isShadow }) => isShadow);
  const denied = [...(hasEnforced ? ['denied'] : []), ...(hasShadow ? ['would have denied'] : [])];
  return (
    <ul class="legend">
      <li>
        <span class="swatch denied-until" aria-hidden="true" /> {denied.join(' or ')} until
      </li>
      <li>
        <span class="swatch counting" aria-hidden="true" /> grants still count until
      </li>
      <li>
        <span class="swatch left" aria-hidden="true" /> part of the limit that is left
      </li>
    </ul>
  );
}

/** The timelines of some windows, and the same as a table. */
export function Timeline({ limits }: { readonly limits: readonly KeyLimit[] }): JSX.Element {
  return (
    <>
      <ul class="timeline">
        {limits.map((limit) => (
          <Row key={`${limit.rule}:${limit.windowMillis}`} limit={limit} />
        ))}
      </ul>
      <details>
        <summary>The same as a table</summary>
        <ScrollTable label="Limits">
          <thead>
            <tr>
              <th scope="col">Rule</th>
              <th scope="col" class="number">
                Limit
              </th>
              <th scope="col" class="number">
                Remaining
              </th>
              <th scope="col" class="number">
                Window
              </th>
              <th scope="col" class="number">
                Fits in
              </th>
              <th scope="col" class="number">
                All free in
              </th>
            </tr>
          </thead>
          <tbody>
            {limits.map(({ rule, limit, remaining, windowMillis, retryAfterMillis = 0, resetMillis }) => (
              <tr key={`${rule}:${windowMillis}`}>
                <th scope="row">{rule}</th>
                <td class="number">{wholeNumber(limit)}</td>
                <td class="number">{wholeNumber(remaining)}</td>
                <td class="number">{span(windowMillis)}</td>
                <td class="number">
                  {limit === 0 ? 'never' : retryAfterMillis === 0 ? 'now' : span(retryAfterMillis)}
                </td>
                <td class="number">{resetMillis === 0 ? 'now' : span(resetMillis)}</td>
              </tr>
            ))}
          </tbody>
        </ScrollTable>
      </details>
    </>
  );
}
