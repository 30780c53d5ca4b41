/** The view of usage: the answers of all nodes over time, by rule, and for the keys with the most answers. */
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
import { readUsage, type UsageRead } from './polled.ts';
import { keyHref } from './router.ts';
import { SPANS, SpanChoice } from './range.tsx';
import { nodesInWords, wholeNumber } from './words.ts';

const TOP = 10;
const AGAIN_MILLIS = 10_000;
const MINUTE_SECONDS = 60;

function useUsage(minutes: number): UsageRead {
  const [reported, setReported] = useState<UsageRead>({ report: undefined, failure: '' });
  useEffect(() => {
    let isOver = false;
    const read = async (): Promise<void> => {
      const next = await readUsage({ minutes, top: TOP });
      if (!isOver) setReported((before) => ({ report: next.report ?? before.report, failure: next.failure }));
    };
    void read();
    const timer = setInterval(() => void read(), AGAIN_MILLIS);
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, [minutes]);
  return reported;
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

/** CSS classes of a column. A phone hides the shadow columns; the view of the rules shows the same figures. */
function classOf(column: UsageColumn): string {
  return column === 'wouldAllow' || column === 'wouldDeny' ? 'number wide-only' : 'number';
}

function ByRule({ report }: { readonly report: UsageReport }): JSX.Element {
  // Columns without any count are left out to save room.
  const columns = USAGE_COLUMNS.filter(
    (column) => column === 'allowed' || column === 'denied' || report.rules.some((row) => row[column] > 0),
  );
  if (report.rules.length === 0)
    return (
      <p class="quiet">
        No node answered a request in this time. Send one, such as <code>npx quorate allow ada</code>, or
        choose a longer time.
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
  /** Shown if there are no keys. */
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

/** The whole view. */
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
              <p class="message warning">Figures of {nodesInWords(report.silent)} are missing: no answer.</p>
            )}
          </section>
          <section class="panel" aria-label="By rule and key">
            <ByRule report={report} />
            {report.top === undefined ? (
              <p class="quiet">
                Keys are shown to tokens only; in an open cluster, ask on the machine of the node.
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
                  none="No key was granted anything. Check the nodes in the overview, and whether any client sends requests."
                />
              </>
            )}
          </section>
        </>
      )}
    </>
  );
}
