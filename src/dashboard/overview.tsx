/** The overview: the verdict on the cluster, who is being limited, charts over time, the nodes, and the last events. */
import type { JSX } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import { Chart, type Series } from './chart.tsx';
import { ClusterPicture } from './cluster-picture.tsx';
import { NodeTable, PartitionTable } from './cluster-tables.tsx';
import { EventList } from './faults.tsx';
import { drawnOf, LIVE_MINUTES, type Reported, compared as comparedIn, deniedFraction } from './history.ts';
import { Figures, LimitedKeys, RulesLimiting } from './limiting.tsx';
import { type Limits, useLimits } from './limits-watch.ts';
import type { Feed } from './feed.ts';
import { Notice } from './notice.tsx';
import { type Range, RangeChoice, RANGES } from './range.tsx';
import { verdictOf } from './severity.ts';
import { clockTime, nodesInWords } from './words.ts';

const EVENTS_SHOWN = 5;

/** Lines of the rate chart, in the order of the outcomes of usage figures. */
export const OUTCOME_SERIES: readonly Series[] = [
  { label: 'allowed', colour: '--allowed', dash: [] },
  { label: 'denied', colour: '--denied', dash: [6, 4] },
  { label: 'unavailable', colour: '--unavailable', dash: [2, 3] },
  { label: 'degraded', colour: '--degraded', dash: [10, 3, 2, 3] },
];
const TIME_SERIES: readonly Series[] = [
  { label: 'median', colour: '--allowed', dash: [] },
  { label: '99th percentile', colour: '--denied', dash: [6, 4] },
];

function Charts({
  limits,
  range,
  feed,
}: {
  readonly limits: Limits;
  readonly range: Range;
  readonly feed: Feed;
}): JSX.Element {
  const { minutes } = range;
  const reported = useRef<Reported | undefined>(undefined);
  if (reported.current?.history !== limits.history)
    reported.current = limits.history && {
      history: limits.history,
      second: feed.samples.seconds.at(-1) ?? Date.now() / 1_000,
    };
  const drawn = useMemo(
    () => drawnOf(reported.current, feed.samples, minutes),
    [limits.history, feed.samples, minutes],
  );
  return (
    <section class="panel charts" aria-label={`The last ${range.words}`}>
      <Chart
        title="Answers of the cluster per second"
        unit=""
        series={OUTCOME_SERIES}
        seconds={drawn.seconds}
        columns={drawn.rates}
        minutes={minutes}
      />
      <Chart
        title={
          minutes <= LIVE_MINUTES
            ? 'How long answers took, whole cluster'
            : 'How long answers took, at the slowest node'
        }
        unit=" ms"
        series={TIME_SERIES}
        seconds={drawn.seconds}
        columns={drawn.times}
        minutes={minutes}
      />
    </section>
  );
}

/** Says which nodes the figures lack, because they do not answer. */
function Missing({ feed, limits }: { readonly feed: Feed; readonly limits: Limits }): JSX.Element | null {
  const silent = limits.report?.silent ?? feed.figures?.rates?.silent ?? [];
  if (silent.length === 0) return null;
  return <p class="quiet">Figures of {nodesInWords(silent)} are missing.</p>;
}

/** The view that the page starts with. */
export function Overview({ feed }: { readonly feed: Feed }): JSX.Element {
  const { cluster, figures, faults, status, heardMillis } = feed;
  const [range, setRange] = useState<Range>(RANGES[0]);
  const limits = useLimits(range.minutes, status === 'live');
  const compared = useMemo(
    () => limits.history && comparedIn(limits.history, range.minutes),
    [limits.history, range.minutes],
  );
  const verdict = verdictOf(feed, compared && deniedFraction(compared.now));
  if (cluster === undefined)
    return verdict === undefined ? (
      <p class="quiet" role="status">
        {figures?.readiness.status === 'starting'
          ? 'This node is starting: it loads what is on its disk.'
          : 'Waiting for the first report.'}
      </p>
    ) : (
      <Notice verdict={verdict} />
    );
  const oldMillis = status === 'lost' ? heardMillis : undefined;
  return (
    <div class={`page ${oldMillis === undefined ? '' : 'old'}`}>
      {verdict !== undefined && <Notice verdict={verdict} />}
      <div class="toolbar">
        <RangeChoice range={range} choose={setRange} />
        {oldMillis !== undefined && <p class="as-of">as of {clockTime(oldMillis)}</p>}
        <Missing feed={feed} limits={limits} />
      </div>
      {limits.failure !== '' && oldMillis === undefined && (
        <p class="message bad" role="alert">
          Usage figures cannot be read: {limits.failure}
        </p>
      )}
      <Figures compared={compared} range={range} figures={figures} isOld={oldMillis !== undefined} />
      <div class="columns">
        <section class="panel" aria-label="Keys that are limited">
          <LimitedKeys limits={limits} />
        </section>
        <section class="panel" aria-label="Rules that limit">
          <RulesLimiting report={limits.report} range={range} />
        </section>
      </div>
      <Charts limits={limits} range={range} feed={feed} />
      <section class="panel" aria-labelledby="picture-title">
        <h2 id="picture-title">Nodes and partitions</h2>
        <ClusterPicture cluster={cluster} oldMillis={oldMillis} heardMillis={heardMillis} />
        <details>
          <summary>The same as tables</summary>
          <NodeTable cluster={cluster} oldMillis={oldMillis} heardMillis={heardMillis} />
          <PartitionTable cluster={cluster} />
        </details>
      </section>
      <section class="panel" aria-labelledby="last-events">
        <h2 id="last-events">The last events</h2>
        <EventList events={faults.slice(0, EVENTS_SHOWN)} />
        {faults.length > EVENTS_SHOWN && <a href="#/faults">All events</a>}
      </section>
    </div>
  );
}
