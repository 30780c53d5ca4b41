/**
 * Draws each node as a card with its current figures, and a tile for each partition it holds. Every state has its own
 * shape or word, not only a colour. Old data is dimmed and dated.
 */
import type { JSX } from 'preact';
import type { ReportedNode, ReportedPartition } from '../api/cluster-report.ts';
import type { LiveCluster } from '../api/monitoring.ts';
import { lagIn, nodeStateOf, isHeldBy, LAG_MIN, lagOf, movesOf } from './cluster-state.ts';
import { bytes, clockTime, counted, millis, partsPerMillion, percent, wholeNumber } from './words.ts';

/** The maximum number of tiles on a card. A node with more partitions shows only those that are not healthy. */
const TILES_MAX = 256;

interface PictureProps {
  readonly cluster: LiveCluster;
  /** When the feed was lost; undefined if it is live. */
  readonly oldMillis: number | undefined;
  /** When the last report arrived. */
  readonly heardMillis: number;
}

type Mark = '' | '!' | '→' | '←' | '↓';

function markOf(partition: ReportedPartition, node: number): Mark {
  if (partition.leader === 0) return '!';
  const { to, from } = movesOf(partition);
  if (to.includes(node)) return '→';
  if (from.includes(node)) return '←';
  return lagOf(partition, node) >= LAG_MIN ? '↓' : '';
}

const MARK_CLASSES: Readonly<Record<Mark, string>> = {
  '': '',
  '!': 'leaderless',
  '→': 'arriving',
  '←': 'leaving',
  '↓': 'behind',
};

function tilesOf({ partitions }: LiveCluster, node: number): ReportedPartition[] {
  return partitions.filter((partition) => isHeldBy(partition, node) || movesOf(partition).to.includes(node));
}

function Tiles({ cluster, node }: { readonly cluster: LiveCluster; readonly node: number }): JSX.Element {
  const here = tilesOf(cluster, node);
  const drawn =
    here.length <= TILES_MAX ? here : here.filter((each) => markOf(each, node) !== '').slice(0, TILES_MAX);
  return (
    <>
      <div class="tiles" aria-hidden="true">
        {drawn.map((partition) => {
          const mark = markOf(partition, node);
          const leads = partition.leader === node ? 'leader' : '';
          return (
            <span key={partition.id} class={`tile ${leads} ${MARK_CLASSES[mark]}`}>
              {partition.id}
              <sup>{mark}</sup>
            </span>
          );
        })}
      </div>
      {drawn.length < here.length && (
        <p class="quiet">{counted(here.length - drawn.length, 'healthy partition')} not drawn</p>
      )}
    </>
  );
}

function Fact({ name, value }: { readonly name: string; readonly value: string }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Memory({ used, max }: { readonly used: number; readonly max: number }): JSX.Element {
  const fraction = max === 0 ? 0 : Math.min(1, used / max);
  return (
    <div class="wide">
      <dt>memory</dt>
      <dd>
        {bytes(used)} of {bytes(max)} ({percent(fraction)})
        <svg class="fraction" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
          <rect class="track" width="100" height="6" />
          <rect class={fraction > 0.8 ? 'denied' : 'used'} width={100 * fraction} height="6" />
        </svg>
      </dd>
    </div>
  );
}

function NodeFacts({
  node,
  cluster,
}: {
  readonly node: ReportedNode;
  readonly cluster: LiveCluster;
}): JSX.Element {
  const { figures, clock } = node;
  if (figures === undefined) return <p class="quiet">Nothing is known of its speed and memory.</p>;
  const { p99Millis, diskP99Millis, clockPpm, stateBytes, stateBytesMax } = figures;
  const lag = lagIn(cluster, node.id);
  return (
    <dl class="node-facts">
      <Fact name="99th percentile" value={p99Millis === null ? 'idle' : millis(p99Millis)} />
      <Fact name="disk write" value={diskP99Millis === null ? 'idle' : millis(diskP99Millis)} />
      <Fact name="behind by" value={lag === 0 ? 'nothing' : counted(lag, 'entry', 'entries')} />
      <Fact
        name="clock"
        value={clock !== null && clock !== 'fit' ? `too ${clock}` : partsPerMillion(clockPpm)}
      />
      <Memory used={stateBytes} max={stateBytesMax} />
    </dl>
  );
}

function NodeCard({
  node,
  cluster,
  oldMillis,
  heardMillis,
}: PictureProps & { readonly node: ReportedNode }): JSX.Element {
  const held = cluster.partitions.filter((partition) => isHeldBy(partition, node.id));
  const led = held.filter(({ leader }) => leader === node.id).length;
  const isSelf = node.id === cluster.self.id;
  const { state, tone, asOfMillis } = nodeStateOf(node, { isSelf, oldMillis, heardMillis });
  const { http } = node;
  const mayOpen = http !== null && asOfMillis === undefined && !isSelf;
  return (
    <li
      class={`node ${state === 'silent' ? 'down' : 'up'} ${asOfMillis === undefined ? '' : 'old'}`}
      data-node={node.id}
      data-state={state}
    >
      <p class="node-name">
        <span>
          <strong>Node {node.id}</strong>
          {isSelf && <span class="quiet"> · serves this page</span>}
        </span>
        <span class={`mark ${tone}`}>{state}</span>
      </p>
      <p class="quiet">
        leads {led} of {held.length}
        {http !== null && (
          <>
            {' · '}
            {mayOpen ? <a href={`${location.protocol}//${http}/${location.hash}`}>{http}</a> : http}
          </>
        )}
        {node.zone !== undefined && ` · zone ${node.zone}`}
      </p>
      {asOfMillis !== undefined && <p class="as-of">as of {clockTime(asOfMillis)}</p>}
      <NodeFacts node={node} cluster={cluster} />
      <Tiles cluster={cluster} node={node.id} />
    </li>
  );
}

/** Says why the leaders are where they are. */
function LeadersLine({ gatheredOn }: { readonly gatheredOn: number }): JSX.Element {
  const where =
    gatheredOn === 0
      ? 'Leaders are spread over the nodes: no node can lead all of them now.'
      : `Leaders are gathered on node ${gatheredOn}: it has headroom, and requests share its disk writes.`;
  return <p class="quiet">{where}</p>;
}

const LEGEND: readonly { readonly kind: string; readonly mark: Mark; readonly words: string }[] = [
  { kind: 'behind', mark: '↓', words: `${wholeNumber(LAG_MIN)} entries behind or more` },
  { kind: 'arriving', mark: '→', words: 'moving to this node' },
  { kind: 'leaving', mark: '←', words: 'moving away' },
  { kind: 'leaderless', mark: '!', words: 'without a leader' },
];

/** Explains only the marks that the cards show. */
function Legend({ cluster }: { readonly cluster: LiveCluster }): JSX.Element {
  const marks = new Set(
    cluster.nodes.flatMap(({ id }) => tilesOf(cluster, id).map((partition) => markOf(partition, id))),
  );
  const hasLeader = cluster.partitions.some(({ leader }) => leader !== 0);
  return (
    <ul class="legend">
      {hasLeader && (
        <li>
          <span class="tile leader">0</span> partition led by this node
        </li>
      )}
      <li>
        <span class="tile">0</span> replica
      </li>
      {LEGEND.filter(({ mark }) => marks.has(mark)).map(({ kind, mark, words }) => (
        <li key={kind}>
          <span class={`tile ${kind}`}>
            0<sup>{mark}</sup>
          </span>{' '}
          {words}
        </li>
      ))}
    </ul>
  );
}

/** All node cards and their legend. */
export function ClusterPicture(props: PictureProps): JSX.Element {
  const { cluster } = props;
  return (
    <div class="picture">
      {cluster.gatheredOn !== undefined && <LeadersLine gatheredOn={cluster.gatheredOn} />}
      <ul class="nodes">
        {cluster.nodes.map((node) => (
          <NodeCard key={node.id} node={node} {...props} />
        ))}
      </ul>
      <Legend cluster={cluster} />
    </div>
  );
}
