/**
 * Panels that show who is being limited: the denied fraction now and before, the keys denied most, and the rules that
 * deny.
 */
import type { ComponentChildren, JSX } from 'preact';
import type { LiveFigures } from '../api/monitoring.ts';
import type { UsageReport } from '../api/usage.ts';
import { ScrollTable } from './cluster-tables.tsx';
import type { Peeked } from './limited-keys.ts';
import type { Limits, PeekedKey } from './limits-watch.ts';
import type { Range } from './range.tsx';
import { byDenials, type Compared, deniedFraction } from './history.ts';
import { clockTime, counted, millis, percent, rate, shortNumber, span, wholeNumber } from './words.ts';

/** The maximum number of rows of the table of rules; the page Usage has all. */
const RULES_SHOWN = 12;

/** Stands in for a table without rows, and says what that means. */
function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <div class="empty">
      <h2>{title}</h2>
      <p>{children}</p>
    </div>
  );
}

function Figure({
  name,
  value,
  more = '',
  tone = '',
}: {
  readonly name: string;
  readonly value: string;
  readonly more?: string;
  readonly tone?: string;
}): JSX.Element {
  return (
    <div class={tone}>
      <dt>{name}</dt>
      <dd>
        {value}
        {more !== '' && <span class="more">{more}</span>}
      </dd>
    </div>
  );
}

/** Compares the denied fraction with that of as many minutes before. */
function beforeInWords({ now, before }: Compared, words: string): string {
  const fraction = deniedFraction(now);
  if (before === undefined) return 'nodes do not keep enough history to compare';
  const was = deniedFraction(before);
  if (was === undefined) return `no requests in the ${words} before`;
  const points = Math.round(100 * ((fraction ?? 0) - was));
  const way = points === 0 ? '' : points > 0 ? `▲ ${points} points, ` : `▼ ${-points} points, `;
  return `${way}${percent(was)} in the ${words} before`;
}

function known(value: number | undefined): string {
  return value === undefined ? '–' : wholeNumber(value);
}

/** The row of large figures. */
export function Figures({
  compared,
  range,
  figures,
  isOld,
}: {
  readonly compared: Compared | undefined;
  readonly range: Range;
  readonly figures: LiveFigures | undefined;
  /** The feed is lost, so no current rates are shown. */
  readonly isOld: boolean;
}): JSX.Element {
  const { rates, clusterTimes } = figures ?? {};
  const fraction = compared && deniedFraction(compared.now);
  const perSecond = rates?.perSecond;
  const { allowed, denied, unavailable = 0, degraded = 0 } = compared?.now ?? {};
  const now = (value: number | undefined): string =>
    value === undefined || isOld ? '' : `${rate(value)} a second now`;
  return (
    <dl class="figures">
      <Figure
        name="denied, of all decisions"
        value={fraction === undefined ? '–' : percent(fraction)}
        more={compared === undefined ? '' : beforeInWords(compared, range.words)}
        tone={(fraction ?? 0) > 0.5 ? 'warning' : ''}
      />
      <Figure name="requests allowed" value={known(allowed)} more={now(perSecond?.allowed)} />
      <Figure name="requests denied" value={known(denied)} more={now(perSecond?.denied)} />
      <Figure
        name={degraded > 0 ? 'without a decision (fail modes decided some)' : 'answered “unavailable”'}
        value={compared === undefined ? '–' : wholeNumber(unavailable + degraded)}
        more={now(perSecond === undefined ? undefined : perSecond.unavailable + perSecond.degraded)}
        tone={unavailable + degraded > 0 ? 'bad' : ''}
      />
      <Figure
        name="99th percentile, whole cluster"
        value={millis(clusterTimes?.p99Millis)}
        more={
          clusterTimes
            ? `median ${millis(clusterTimes.p50Millis)}, over ${clusterTimes.seconds} s`
            : 'no requests for 10 s'
        }
      />
    </dl>
  );
}

function waitInWords(peeked: Peeked): string {
  switch (peeked.kind) {
    case 'unknown':
      return 'not known';
    case 'blocked':
      return 'blocked';
    case 'fits':
      return 'now';
    case 'waits':
      return peeked.retryMillis === undefined ? 'never: limit 0' : `in ${span(peeked.retryMillis)}`;
  }
}

/** The full hour at which the counts begin. */
function hourOf(atMillis: number | undefined): string {
  return atMillis === undefined ? '' : clockTime(atMillis).slice(0, 5);
}

function KeyRow({ limited }: { readonly limited: PeekedKey }): JSX.Element {
  const { key, rule, denied, perSecond, peeked } = limited;
  const isWaiting = peeked.kind === 'waits' || peeked.kind === 'blocked';
  return (
    <tr>
      <th scope="row">
        <a href={`#/key/${encodeURIComponent(key)}`}>{key}</a>
        <span class="more">{rule}</span>
      </th>
      <td class="number">
        {shortNumber(denied)}
        {perSecond !== undefined && <span class="more">{rate(perSecond)} a second</span>}
      </td>
      <td class="number">
        <span class={isWaiting ? 'mark warning' : 'mark'}>{waitInWords(peeked)}</span>
      </td>
    </tr>
  );
}

/** The table of the keys that are denied most right now. */
export function LimitedKeys({ limits }: { readonly limits: Limits }): JSX.Element {
  const { keys, areKeysHidden, report } = limits;
  if (areKeysHidden)
    return (
      <Empty title="Keys limited most just now">
        Keys are shown to tokens only; in an open cluster, ask on the machine of the node. Create a token and
        sign in with it: <code>npx quorate tokens create --role read</code>
      </Empty>
    );
  if (report === undefined) return <p class="quiet">Reading.</p>;
  if (keys.length === 0)
    return (
      <Empty title="Keys limited most just now">
        No key was denied in this hour or the one before: nobody is limited.
      </Empty>
    );
  return (
    <ScrollTable label="Keys limited most just now">
      <thead>
        <tr>
          <th scope="col">Key and rule</th>
          <th scope="col" class="number">
            Denied since {hourOf(report.top?.fromMillis)}
          </th>
          <th scope="col" class="number">
            Next request fits
          </th>
        </tr>
      </thead>
      <tbody>
        {keys.map((limited) => (
          <KeyRow key={`${limited.rule} ${limited.key}`} limited={limited} />
        ))}
      </tbody>
    </ScrollTable>
  );
}

/** A bar that shows the denied fraction of a rule's decisions. */
function FractionBar({ fraction }: { readonly fraction: number }): JSX.Element {
  return (
    <svg class="fraction" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect class="track" width="100" height="6" />
      <rect class="denied" width={100 * fraction} height="6" />
    </svg>
  );
}

type RuleRow = UsageReport['rules'][number];

/** One rule. Requests that a shadow rule would have denied have their own column. */
function RuleCells({ row, hasShadow }: { readonly row: RuleRow; readonly hasShadow: boolean }): JSX.Element {
  const shadowed = row.wouldAllow + row.wouldDeny;
  const fraction = deniedFraction(row);
  return (
    <tr>
      <th scope="row">
        {row.rule} {shadowed > 0 && <span class="mark">shadow</span>}
        {fraction !== undefined && <FractionBar fraction={fraction} />}
      </th>
      <td class="number">{fraction === undefined ? '–' : shortNumber(row.allowed)}</td>
      <td class="number">
        {fraction === undefined ? '–' : shortNumber(row.denied)}
        {fraction !== undefined && fraction > 0 && <span class="more">{percent(fraction)}</span>}
      </td>
      {hasShadow && (
        <td class="number">
          {shadowed === 0 ? '' : shortNumber(row.wouldDeny)}
          {shadowed > 0 && <span class="more">{`of ${shortNumber(shadowed)}`}</span>}
        </td>
      )}
    </tr>
  );
}

/** The table of rules, the most denying first. */
export function RulesLimiting({
  report,
  range,
}: {
  readonly report: UsageReport | undefined;
  readonly range: Range;
}): JSX.Element {
  if (report === undefined) return <p class="quiet">Reading.</p>;
  const rules = byDenials(report.rules);
  if (rules.length === 0)
    return (
      <Empty title="By rule">
        No requests in the last {range.words}. Send one yourself: <code>npx quorate allow ada</code>
      </Empty>
    );
  const shown = rules.slice(0, RULES_SHOWN);
  const hasShadow = shown.some(({ wouldAllow, wouldDeny }) => wouldAllow + wouldDeny > 0);
  const rest = rules.length - shown.length;
  return (
    <>
      <ScrollTable label={`By rule, the last ${range.words}`}>
        <thead>
          <tr>
            <th scope="col">Rule</th>
            <th scope="col" class="number">
              Allowed
            </th>
            <th scope="col" class="number">
              Denied
            </th>
            {hasShadow && (
              <th scope="col" class="number">
                Would deny
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <RuleCells key={row.rule} row={row} hasShadow={hasShadow} />
          ))}
        </tbody>
      </ScrollTable>
      {rest > 0 && (
        <p>
          <a href="#/usage">{counted(rest, 'more rule')}, on the page Usage</a>
        </p>
      )}
    </>
  );
}
