/** Tables with the same data as the node cards, for screen readers and for exact numbers. */
import type { ComponentChildren, JSX } from 'preact';
import type { ReportedNode, ReportedPartition } from '../api/cluster-report.ts';
import type { LiveCluster } from '../api/monitoring.ts';
import { lagIn, nodeStateOf, lagOf, placeInWords } from './cluster-state.ts';
import { bytes, clockTime, millis, partsPerMillion, wholeNumber } from './words.ts';

/** The maximum number of rows of the partition table. */
const ROWS_MAX = 256;

/** A table that scrolls sideways if it is wider than the screen. The keyboard can scroll it, too. */
export function ScrollTable({
  label,
  children,
}: {
  readonly label: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <div class="scroll" role="region" aria-label={label} tabIndex={0}>
      <table>
        <caption>{label}</caption>
        {children}
      </table>
    </div>
  );
}

/** One row for each node. */
export function NodeTable({
  cluster,
  oldMillis,
  heardMillis,
}: {
  readonly cluster: LiveCluster;
  /** When the feed was lost; undefined if it is live. */
  readonly oldMillis: number | undefined;
  readonly heardMillis: number;
}): JSX.Element {
  const stateInWords = (node: ReportedNode): string => {
    const isSelf = node.id === cluster.self.id;
    const { state, asOfMillis } = nodeStateOf(node, { isSelf, oldMillis, heardMillis });
    return asOfMillis === undefined ? state : `${state}, as of ${clockTime(asOfMillis)}`;
  };
  return (
    <ScrollTable label="Nodes">
      <thead>
        <tr>
          <th scope="col">Node</th>
          <th scope="col">State</th>
          <th scope="col" class="number">
            Leads
          </th>
          <th scope="col" class="number">
            99th percentile
          </th>
          <th scope="col" class="number">
            Disk write
          </th>
          <th scope="col" class="number">
            Entries behind
          </th>
          <th scope="col">Clock</th>
          <th scope="col">Memory</th>
          <th scope="col">Zone</th>
          <th scope="col">Host</th>
          <th scope="col">HTTP</th>
          <th scope="col">Release</th>
        </tr>
      </thead>
      <tbody>
        {cluster.nodes.map((node) => (
          <tr key={node.id}>
            <th scope="row">{node.id}</th>
            <td>{stateInWords(node)}</td>
            <td class="number">{cluster.partitions.filter(({ leader }) => leader === node.id).length}</td>
            <td class="number">{millis(node.figures?.p99Millis)}</td>
            <td class="number">{millis(node.figures?.diskP99Millis)}</td>
            <td class="number">{wholeNumber(lagIn(cluster, node.id))}</td>
            <td>{clockInWords(node)}</td>
            <td>{memoryInWords(node)}</td>
            <td>{node.zone ?? '–'}</td>
            <td>{node.host ?? '–'}</td>
            <td>{node.http ?? 'unknown'}</td>
            <td>{node.release ?? 'unknown'}</td>
          </tr>
        ))}
      </tbody>
    </ScrollTable>
  );
}

function clockInWords({ clock, figures }: ReportedNode): string {
  if (clock !== null && clock !== 'fit') return `too ${clock}`;
  return partsPerMillion(figures?.clockPpm ?? null);
}

function memoryInWords({ figures }: ReportedNode): string {
  return figures === undefined ? '–' : `${bytes(figures.stateBytes)} of ${bytes(figures.stateBytesMax)}`;
}

function replicasOf(partition: ReportedPartition): string {
  return partition.replicas
    .map(({ node }) => {
      const lag = lagOf(partition, node);
      return lag === 0 ? String(node) : `${node} (${wholeNumber(lag)} behind)`;
    })
    .join(', ');
}

/** One row for each partition. */
export function PartitionTable({ cluster }: { readonly cluster: LiveCluster }): JSX.Element {
  const rows = cluster.partitions.slice(0, ROWS_MAX);
  const rest = cluster.partitions.length - rows.length;
  return (
    <ScrollTable label={rest > 0 ? `Partitions, the first ${ROWS_MAX} of ${rest + ROWS_MAX}` : 'Partitions'}>
      <thead>
        <tr>
          <th scope="col">Partition</th>
          <th scope="col">Leader</th>
          <th scope="col" class="number">
            Term
          </th>
          <th scope="col" class="number">
            Commit
          </th>
          <th scope="col">Replicas</th>
          <th scope="col">Placement</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((partition) => (
          <tr key={partition.id}>
            <th scope="row">{partition.id}</th>
            <td>{partition.leader === 0 ? 'none' : partition.leader}</td>
            <td class="number">{wholeNumber(partition.term)}</td>
            <td class="number">{wholeNumber(partition.commit)}</td>
            <td>{replicasOf(partition)}</td>
            <td>{placeInWords(partition)}</td>
          </tr>
        ))}
      </tbody>
    </ScrollTable>
  );
}
