/** The cluster as it is now: in a sentence, in figures, as a picture, over the last minutes. */
import type { JSX } from 'preact';
import type { LiveFigures } from '../api/monitoring.ts';
import { Chart, type Series } from './chart.tsx';
import { ClusterPicture } from './cluster-picture.tsx';
import { NodeTable, PartitionTable } from './cluster-tables.tsx';
import { FaultList } from './faults.tsx';
import type { Feed } from './live-feed.ts';
import { bytes, clusterInWords, millis, rate, wholeNumber } from './words.ts';

const FAULTS_SHOWN = 5;

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

function Figure({ name, value }: { readonly name: string; readonly value: string }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Figures({ figures }: { readonly figures: LiveFigures | undefined }): JSX.Element {
  const { rates, times, openRequests, stateBytes, stateBytesMax = 0 } = figures ?? {};
  return (
    <dl class="figures">
      <Figure name="allowed per second" value={rate(rates?.perSecond.allowed)} />
      <Figure name="denied per second" value={rate(rates?.perSecond.denied)} />
      <Figure name="unavailable per second" value={rate(rates?.perSecond.unavailable)} />
      <Figure name="99th percentile, this node" value={millis(times?.p99Millis)} />
      <Figure
        name="open requests, this node"
        value={openRequests === undefined ? '–' : wholeNumber(openRequests)}
      />
      <Figure
        name={`remembered of ${bytes(stateBytesMax)}, this node`}
        value={stateBytes === undefined ? '–' : bytes(stateBytes)}
      />
    </dl>
  );
}

export function Overview({ feed }: { readonly feed: Feed }): JSX.Element {
  const { cluster, figures, samples, faults } = feed;
  if (cluster === undefined)
    return (
      <p class="quiet" role="status">
        {figures?.readiness.status === 'starting'
          ? 'This node is starting.'
          : 'Waiting for the first report.'}
      </p>
    );
  const { gravity, words } = clusterInWords(cluster);
  const silent = figures?.rates?.silent ?? [];
  return (
    <>
      <p class={`banner ${gravity}`} role="status" id="summary">
        {words}
      </p>
      <Figures figures={figures} />
      <section class="panel" aria-labelledby="picture-title">
        <h2 id="picture-title">Nodes and partitions</h2>
        <ClusterPicture cluster={cluster} />
        <details>
          <summary>The same as tables</summary>
          <NodeTable cluster={cluster} />
          <PartitionTable cluster={cluster} />
        </details>
      </section>
      <section class="panel charts" aria-label="The last five minutes">
        <Chart
          title="Answers of the cluster per second"
          unit=""
          series={OUTCOME_SERIES}
          seconds={samples.seconds}
          columns={samples.rates}
        />
        <Chart
          title="How long answers of this node took"
          unit=" ms"
          series={TIME_SERIES}
          seconds={samples.seconds}
          columns={samples.times}
        />
        {silent.length > 0 && (
          <p class="quiet">Without what node {silent.join(', ')} answered: it says nothing.</p>
        )}
      </section>
      <section class="panel" aria-labelledby="last-faults">
        <h2 id="last-faults">The last faults</h2>
        <FaultList faults={faults.slice(0, FAULTS_SHOWN)} />
        {faults.length > FAULTS_SHOWN && <a href="#/faults">All of them</a>}
      </section>
    </>
  );
}
