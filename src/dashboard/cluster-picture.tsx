/**
 * The cluster as a picture: a card for each node, and on it a tile for each partition that it holds. Every state has a shape or a
 * word of its own, not only a colour. The table beside it says the same.
 */
import type { JSX } from 'preact';
import type { ReportedNode, ReportedPartition } from '../api/cluster-report.ts';
import type { LiveCluster } from '../api/monitoring.ts';
import { isHeldBy, LAG_MIN, lagOf, movesOf } from './replicas.ts';
import { counted } from './words.ts';

/** Of one node; beyond it only those are drawn with which something is the matter. */
const TILES_MAX = 256;

function tileClass(partition: ReportedPartition, node: number): string {
  const names = ['tile'];
  if (partition.leader === node) names.push('leader');
  if (partition.leader === 0) names.push('leaderless');
  const { to, from } = movesOf(partition);
  if (to.includes(node)) names.push('arriving');
  if (from.includes(node)) names.push('leaving');
  if (lagOf(partition, node) >= LAG_MIN) names.push('behind');
  return names.join(' ');
}

function markOf(partition: ReportedPartition, node: number): string {
  if (partition.leader === 0) return '!';
  const { to, from } = movesOf(partition);
  if (to.includes(node)) return '→';
  if (from.includes(node)) return '←';
  return lagOf(partition, node) >= LAG_MIN ? '↓' : '';
}

function isUsual(partition: ReportedPartition, node: number): boolean {
  return markOf(partition, node) === '';
}

function stateOf({ up, draining, clock }: ReportedNode): string {
  if (!up) return 'silent';
  if (draining === true) return 'drained';
  return clock === null || clock === 'fit' ? 'up' : `clock too ${clock}`;
}

function NodeCard({
  node,
  cluster,
}: {
  readonly node: ReportedNode;
  readonly cluster: LiveCluster;
}): JSX.Element {
  const held = cluster.partitions.filter((partition) => isHeldBy(partition, node.id));
  const led = held.filter(({ leader }) => leader === node.id).length;
  const here = cluster.partitions.filter(
    (partition) => isHeldBy(partition, node.id) || movesOf(partition).to.includes(node.id),
  );
  const drawn =
    here.length <= TILES_MAX ? here : here.filter((each) => !isUsual(each, node.id)).slice(0, TILES_MAX);
  const state = stateOf(node);
  return (
    <div class={`node ${node.up ? 'up' : 'down'}`} data-node={node.id} data-state={state}>
      <p class="node-name">
        <strong>Node {node.id}</strong>
        <span class={`mark ${state === 'up' ? 'good' : node.up ? 'warning' : 'bad'}`}>{state}</span>
      </p>
      <p class="quiet">
        leads {led} of {held.length}
        {node.http !== null && ` · ${node.http}`}
        {node.zone !== undefined && ` · zone ${node.zone}`}
      </p>
      <div class="tiles">
        {drawn.map((partition) => (
          <span key={partition.id} class={tileClass(partition, node.id)}>
            {partition.id}
            <sup>{markOf(partition, node.id)}</sup>
          </span>
        ))}
      </div>
      {drawn.length < here.length && (
        <p class="quiet">
          {counted(here.length - drawn.length, 'partition')} as they should be are not drawn
        </p>
      )}
    </div>
  );
}

/** Why leaders are where they are. */
function LeadersLine({ gatheredOn }: { readonly gatheredOn: number }): JSX.Element {
  const where =
    gatheredOn === 0
      ? 'Leaders are spread: one node that led all would be too busy, or none may.'
      : `Leaders are gathered on node ${gatheredOn}: it has headroom, and requests share its disk writes.`;
  return <p class="quiet">{where}</p>;
}

export function ClusterPicture({ cluster }: { readonly cluster: LiveCluster }): JSX.Element {
  return (
    <figure class="picture">
      {cluster.gatheredOn !== undefined && <LeadersLine gatheredOn={cluster.gatheredOn} />}
      <div class="nodes" aria-hidden="true">
        {cluster.nodes.map((node) => (
          <NodeCard key={node.id} node={node} cluster={cluster} />
        ))}
      </div>
      <figcaption>
        <ul class="legend">
          <li>
            <span class="tile leader">0</span> led by this node
          </li>
          <li>
            <span class="tile">0</span> replica
          </li>
          <li>
            <span class="tile behind">
              0<sup>↓</sup>
            </span>{' '}
            {LAG_MIN} entries behind or more
          </li>
          <li>
            <span class="tile arriving">
              0<sup>→</sup>
            </span>{' '}
            on its way to this node
          </li>
          <li>
            <span class="tile leaving">
              0<sup>←</sup>
            </span>{' '}
            going away from it
          </li>
          <li>
            <span class="tile leaderless">
              0<sup>!</sup>
            </span>{' '}
            without a leader
          </li>
        </ul>
      </figcaption>
    </figure>
  );
}
