/**
 * A table of the rules in force with their decisions and the key nearest to each limit. A shadow rule is next to the
 * enforced one.
 */
import type { JSX } from 'preact';
import type { UsageReport } from '../api/usage.ts';
import type { RuleDefinition } from '../rules/rule-definition.ts';
import { ruleInWords } from '../rules/words.ts';
import { ScrollTable } from './cluster-tables.tsx';
import { usedPart } from './key-status.ts';
import { keyHref } from './router.ts';
import { countsOf, groupsOf, type Nearest, otherRows } from './rules-usage.ts';
import { counted, span, wholeNumber } from './words.ts';

/** The maximum number of rules shown; the editor shows all. */
const ROWS_MAX = 500;
const COLUMNS = 5;

function fractionWords(part: number, whole: number): string {
  if (whole === 0) return '0';
  const percent = (100 * part) / whole;
  const fraction = percent > 0 && percent < 1 ? '< 1' : String(Math.round(percent));
  return `${wholeNumber(part)} (${fraction} %)`;
}

function modeOf({ enabled, shadow, unlimited }: RuleDefinition): string {
  if (!enabled) return 'not enabled';
  if (shadow) return 'shadow';
  return unlimited ? 'no limit' : 'enforced';
}

function NearestKey({ nearest }: { readonly nearest: Nearest | undefined }): JSX.Element {
  if (nearest === undefined) return <>–</>;
  const { key, window } = nearest;
  const { remaining, limit, retryAfterMillis } = window;
  return (
    <>
      <a class="key" href={keyHref(key)}>
        {key}
      </a>
      <span class="row">
        {wholeNumber(remaining)} of {wholeNumber(limit)} left
        {retryAfterMillis === undefined
          ? ` (${Math.round(100 * usedPart(window))} % used)`
          : `, for ${span(retryAfterMillis)}`}
      </span>
    </>
  );
}

function Row({
  rule,
  usage,
  nearest,
}: {
  readonly rule: RuleDefinition;
  readonly usage: UsageReport | undefined;
  readonly nearest: Nearest | undefined;
}): JSX.Element {
  const { allowed, denied, wouldAllow, wouldDeny } = countsOf(rule, usage?.rules ?? []);
  const mode = modeOf(rule);
  return (
    <tr>
      <th scope="row">
        {rule.id} <span class={`mark ${rule.shadow ? 'warning' : ''}`}>{mode}</span>
        <span class="row">{ruleInWords(rule)}</span>
        {rule.shadow && (
          <span class="row narrow-only">
            Would have denied {fractionWords(wouldDeny, wouldAllow + wouldDeny)}
          </span>
        )}
        {nearest !== undefined && (
          <span class="row narrow-only">
            Nearest: <NearestKey nearest={nearest} />
          </span>
        )}
      </th>
      <td class="number">{rule.shadow ? '–' : wholeNumber(allowed)}</td>
      <td class="number">{rule.shadow ? '–' : fractionWords(denied, allowed + denied)}</td>
      <td class="number wide-only">{rule.shadow ? fractionWords(wouldDeny, wouldAllow + wouldDeny) : '–'}</td>
      <td class="wide-only">
        <NearestKey nearest={nearest} />
      </td>
    </tr>
  );
}

function Head(): JSX.Element {
  return (
    <thead>
      <tr>
        <th scope="col">Rule</th>
        <th scope="col" class="number">
          Allowed
        </th>
        <th scope="col" class="number">
          Denied
        </th>
        <th scope="col" class="number wide-only">
          Would have denied
        </th>
        <th scope="col" class="wide-only">
          Nearest to the limit now
        </th>
      </tr>
    </thead>
  );
}

/** Decisions that belong to no rule in force: limits that requests stated themselves, and rules since removed. */
function Others({ rows }: { readonly rows: UsageReport['rules'] }): JSX.Element | null {
  if (rows.length === 0) return null;
  return (
    <tbody>
      <tr>
        <th class="group" scope="rowgroup" colSpan={COLUMNS}>
          No rule that is in force now
        </th>
      </tr>
      {rows.map(({ rule, allowed, denied, wouldAllow, wouldDeny }) => (
        <tr key={rule}>
          <th scope="row">{rule}</th>
          <td class="number">{wholeNumber(allowed)}</td>
          <td class="number">{fractionWords(denied, allowed + denied)}</td>
          <td class="number wide-only">{fractionWords(wouldDeny, wouldAllow + wouldDeny)}</td>
          <td class="wide-only">–</td>
        </tr>
      ))}
    </tbody>
  );
}

/** The table, with the rules grouped by what they count. */
export function RulesTable({
  version,
  definitions,
  usage,
  nearest,
}: {
  readonly version: number;
  readonly definitions: readonly RuleDefinition[];
  readonly usage: UsageReport | undefined;
  /** By rule id. */
  readonly nearest: ReadonlyMap<string, Nearest>;
}): JSX.Element {
  const shown = definitions.slice(0, ROWS_MAX);
  const rest = definitions.length - shown.length;
  return (
    <div class="rules">
      <ScrollTable
        label={`Version ${version}: ${counted(definitions.length, 'rule')}${rest > 0 ? `, the first ${ROWS_MAX}` : ''}`}
      >
        <Head />
        {groupsOf(shown).map(({ words, rules }) => (
          <tbody key={words}>
            <tr>
              <th class="group" scope="rowgroup" colSpan={COLUMNS}>
                {words}
              </th>
            </tr>
            {rules.map((rule) => (
              <Row key={rule.id} rule={rule} usage={usage} nearest={nearest.get(rule.id)} />
            ))}
          </tbody>
        ))}
        <Others rows={otherRows(usage?.rules ?? [], definitions)} />
      </ScrollTable>
    </div>
  );
}
