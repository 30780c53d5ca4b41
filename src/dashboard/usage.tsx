/** What the doors of all nodes answered: over time, by rule, and for which keys most. */
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import {
  type TopKey,
  USAGE_COLUMNS,
  USAGE_OUTCOMES,
  type UsageColumn,
  type UsageReport,
} from '../api/usage.ts';
import { Chart } from './chart.tsx';
import { ScrollTable } from './cluster-tables.tsx';
import { OUTCOME_SERIES } from './overview.tsx';
import { readUsage, type UsageRead } from './read-usage.ts';
import { keyHref } from './router.ts';
import { SPANS, SpanChoice } from './span-choice.tsx';
import { wholeNumber } from './words.ts';

const TOP = 10;
const AGAIN_MILLIS = 10_000;
const MINUTE_SECONDS = 60;

function useUsage(minutes: number): UsageRead {
  const [told, setTold] = useState<UsageRead>({ report: undefined, failure: '' });
  useEffect(() => {
    let isOver = false;
    const look = async (): Promise<void> => {
      const next = await readUsage({ minutes, top: TOP });
      if (!isOver) setTold((before) => ({ report: next.report ?? before.report, failure: next.failure }));
    };
    void look();
    const timer = setInterval(() => void look(), AGAIN_MILLIS);
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, [minutes]);
  return told;
}

function History({ report }: { readonly report: UsageReport }): JSX.Element {
  const { history } = report;
  const seconds = useMemo(
    () => history.allowed.map((_, i) => history.fromMillis / 1_000 + i * MINUTE_SECONDS),
    [history],
  );
  const columns = useMemo(() => USAGE_OUTCOMES.map((outcome) => history[outcome]), [history]);
  return (
    <Chart title="Answers per minute" unit="" series={OUTCOME_SERIES} seconds={seconds} columns={columns} />
  );
}

const HEADS: Readonly<Record<UsageColumn, string>> = {
  allowed: 'allowed',
  denied: 'denied',
  unavailable: 'unavailable',
  degraded: 'degraded',
  wouldAllow: 'would allow',
  wouldDeny: 'would deny',
};

/** What rules in shadow would have done is told by the view of the rules, too: on a phone there alone. */
function classOf(column: UsageColumn): string {
  return column === 'wouldAllow' || column === 'wouldDeny' ? 'number wide-only' : 'number';
}

function ByRule({ report }: { readonly report: UsageReport }): JSX.Element {
  // A column without any count takes the room of others.
  const columns = USAGE_COLUMNS.filter(
    (column) => column === 'allowed' || column === 'denied' || report.rules.some((row) => row[column] > 0),
  );
  if (report.rules.length === 0)
    return (
      <p class="quiet">
        No node answered a request in this time. Ask for a grant, as with <code>npx quorate allow ada</code>,
        or choose a longer time.
      </p>
    );
  return (
    <ScrollTable label="By rule">
      <thead>
        <tr>
          <th scope="col">Rule</th>
          {columns.map((outcome) => (
            <th key={outcome} scope="col" class={classOf(outcome)}>
              {HEADS[outcome]}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {report.rules.map((row) => (
          <tr key={row.rule}>
            <th scope="row">{row.rule}</th>
            {columns.map((outcome) => (
              <td key={outcome} class={classOf(outcome)}>
                {wholeNumber(row[outcome])}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </ScrollTable>
  );
}

function Top({
  label,
  keys,
  none,
}: {
  readonly label: string;
  readonly keys: readonly TopKey[];
  /** Where there are no keys. */
  readonly none: string;
}): JSX.Element {
  if (keys.length === 0)
    return (
      <>
        <h3>{label}</h3>
        <p class="quiet">{none}</p>
      </>
    );
  return (
    <ScrollTable label={label}>
      <thead>
        <tr>
          <th scope="col">Key</th>
          <th scope="col" class="number">
            Answers
          </th>
        </tr>
      </thead>
      <tbody>
        {keys.map(({ key, rule, count, error }) => (
          <tr key={`${rule} ${key}`}>
            <th scope="row">
              <a class="key" href={keyHref(key)}>
                {key}
              </a>
              <span class="row">{rule}</span>
            </th>
            <td class="number">
              {error === 0 ? wholeNumber(count) : `${wholeNumber(count - error)} to ${wholeNumber(count)}`}
            </td>
          </tr>
        ))}
      </tbody>
    </ScrollTable>
  );
}

export function UsageView(): JSX.Element {
  const [minutes, setMinutes] = useState<number>(SPANS[0].minutes);
  const { report, failure } = useUsage(minutes);
  return (
    <>
      <SpanChoice minutes={minutes} changed={setMinutes} />
      {failure !== '' && (
        <p class="message bad" role="alert">
          {failure}
        </p>
      )}
      {report === undefined ? (
        <p class="quiet">Reading.</p>
      ) : (
        <>
          <section class="panel charts" aria-label="History">
            <History report={report} />
            {report.silent.length > 0 && (
              <p class="message warning">
                Without what node {report.silent.join(', ')} answered: it says nothing.
              </p>
            )}
          </section>
          <section class="panel" aria-label="By rule and key">
            <ByRule report={report} />
            {report.top === undefined ? (
              <p class="quiet">
                Keys are named to tokens, and in an open cluster on the machine of the node alone.
              </p>
            ) : (
              <>
                <Top
                  label="Denied most, this hour and the one before"
                  keys={report.top.denied}
                  none="No key was denied."
                />
                <Top
                  label="Granted most, this hour and the one before"
                  keys={report.top.allowed}
                  none="No key was granted anything: see the nodes and their partitions in the overview, or whether anybody asks."
                />
              </>
            )}
          </section>
        </>
      )}
    </>
  );
}
