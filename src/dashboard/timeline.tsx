/** The windows of one user, each from now to its length: how much is left, when a request fits again, and when everything is free. */
import type { JSX } from 'preact';
import { ScrollTable } from './cluster-tables.tsx';
import { span, wholeNumber } from './words.ts';

export interface WindowStanding {
  readonly rule: string;
  readonly limit: number;
  readonly windowMillis: number;
  readonly remaining: number;
  /** Until the whole limit is free. */
  readonly resetMillis: number;
  /** Until a request of cost 1 fits; absent: it does now. */
  readonly retryAfterMillis?: number;
}

const WIDTH = 1_000;
const HEIGHT = 56;
const TOP = 10;
const BAR = 22;
/** More than windows are widened by. */
const WIDER = 1.01;

function Row({ limit: standing }: { readonly limit: WindowStanding }): JSX.Element {
  const { rule, limit, windowMillis, remaining, resetMillis, retryAfterMillis } = standing;
  // Windows of the cluster's clock are a little wider than they are called; buckets may take longer to be full.
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
          {retryAfterMillis === undefined
            ? limit === 0
              ? 'nothing ever fits'
              : 'a request fits now'
            : `denied for ${span(retryAfterMillis)}`}
          {resetMillis > 0 && `, all free in ${span(resetMillis)}`}
        </span>
        <span>{span(length)}</span>
      </p>
    </li>
  );
}

export function Timeline({ limits }: { readonly limits: readonly WindowStanding[] }): JSX.Element {
  if (limits.length === 0) return <p class="quiet">No rule is for this user.</p>;
  return (
    <>
      <ul class="timeline">
        {limits.map((limit) => (
          <Row key={`${limit.rule}:${limit.windowMillis}`} limit={limit} />
        ))}
      </ul>
      <ul class="legend">
        <li>
          <span class="swatch denied-until" aria-hidden="true" /> denied until
        </li>
        <li>
          <span class="swatch counting" aria-hidden="true" /> grants still count until
        </li>
        <li>
          <span class="swatch left" aria-hidden="true" /> part of the limit that is left
        </li>
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
