/**
 * `CLUSTER`: which node leads which slots, in the forms that clients of Redis Cluster use. Every node answers every
 * command, so a client with an outdated answer only costs an extra hop.
 */
import type { ClusterReport, ReportedNode } from '../../api/cluster-report.ts';
import { keySlot, SLOT_COUNT, slotRangeOf } from '../../api/key-slot.ts';
import { readAddress } from '../../api/node-address.ts';
import type { Call, Command } from '../command.ts';
import { container } from '../command-table.ts';
import { failed, mapOf, OK, type Reply, notUtf8 } from '../reply.ts';

/** The length of a node's name: clients expect 40 hex digits. */
const NODE_NAME_DIGITS = 40;
const FLAGS = ['loading', 'stale'];

interface Endpoint {
  readonly id: number;
  readonly host: string;
  readonly port: number;
  readonly isUp: boolean;
}

/** A range of slots that one node leads. */
interface LedRange {
  readonly first: number;
  last: number;
  readonly leader: Endpoint;
}

/** The command `CLUSTER`. */
export const CLUSTER = container(
  { name: 'CLUSTER', arity: -2, flags: FLAGS, summary: 'Which node leads which slots' },
  [
    subcommand('SLOTS', 2, 'Ranges of slots, each with the node that leads it', ({ listener }) =>
      ledRanges(listener.node.cluster()).map(({ first, last, leader }) => [first, last, slotsNode(leader)]),
    ),
    subcommand('SHARDS', 2, 'Nodes, each with the slots it leads', shards),
    subcommand('NODES', 2, 'Nodes and the slots they lead, a line each', nodes),
    subcommand('INFO', 2, 'How many slots have a leader', info),
    subcommand('MYID', 2, 'The id of this node', ({ listener }) => nodeName(listener.node.cluster().self.id)),
    subcommand('KEYSLOT', 3, 'The slot of a key', ({ args }) => {
      const key = args.text(2);
      return key === undefined ? notUtf8('key') : keySlot(key);
    }),
    subcommand('COUNTKEYSINSLOT', 3, 'Always 0: keys are not kept to be listed', ({ args }) => {
      const slot = args.integer(2);
      return slot >= 0 && slot < SLOT_COUNT ? 0 : failed('Invalid slot');
    }),
  ],
);

/** `ASKING` needs no state, because a node also answers commands for slots that it does not lead. */
export const ASKING: Command = {
  name: 'ASKING',
  arity: 1,
  flags: ['fast'],
  key: 0,
  summary: 'Accepted',
  run: () => OK,
};

function subcommand(name: string, arity: number, summary: string, run: (call: Call) => Reply): Command {
  return { name, arity, flags: FLAGS, key: 0, summary, run };
}

function nodeName(id: number): string {
  return id.toString(16).padStart(NODE_NAME_DIGITS, '0');
}

/** The nodes that have a RESP listener, as far as this node knows. */
function endpoints({ nodes: reported }: ClusterReport): Map<number, Endpoint> {
  return new Map(reported.flatMap((node) => endpointOf(node)).map((each) => [each.id, each]));
}

function endpointOf({ id, resp, up }: ReportedNode): Endpoint[] {
  const address = readAddress(resp ?? '');
  return address === undefined ? [] : [{ id, ...address, isUp: up }];
}

/** The ranges of slots with their leaders. A slot is missing if its leader is not known or has no RESP listener. */
function ledRanges(report: ClusterReport): LedRange[] {
  const known = endpoints(report);
  const ranges: LedRange[] = [];
  for (const { id, leader } of report.partitions) {
    const endpoint = known.get(leader);
    if (endpoint === undefined) continue;
    const { first, last } = slotRangeOf(id, report.partitions.length);
    const before = ranges.at(-1);
    if (before?.leader === endpoint && before.last === first - 1) before.last = last;
    else ranges.push({ first, last, leader: endpoint });
  }
  return ranges;
}

function slotsNode({ id, host, port }: Endpoint): Reply {
  return [host, port, nodeName(id), []];
}

function shards({ listener }: Call): Reply {
  const report = listener.node.cluster();
  const ranges = ledRanges(report);
  return [...endpoints(report).values()].map((node) =>
    mapOf({
      slots: ranges.filter(({ leader }) => leader.id === node.id).flatMap(({ first, last }) => [first, last]),
      nodes: [
        mapOf({
          id: nodeName(node.id),
          port: node.port,
          ip: node.host,
          endpoint: node.host,
          role: 'master',
          'replication-offset': 0,
          health: node.isUp ? 'online' : 'fail',
        }),
      ],
    }),
  );
}

function nodes({ listener }: Call): Reply {
  const report = listener.node.cluster();
  const ranges = ledRanges(report);
  const lines = [...endpoints(report).values()].map(({ id, host, port, isUp }) => {
    const flags = id === report.self.id ? 'myself,master' : 'master';
    const led = ranges
      .filter(({ leader }) => leader.id === id)
      .map(({ first, last }) => (first === last ? ` ${first}` : ` ${first}-${last}`));
    // The port of the cluster bus. There is none; 0 says so.
    const state = isUp ? 'connected' : 'disconnected';
    return `${nodeName(id)} ${host}:${port}@0 ${flags} - 0 0 ${report.version} ${state}${led.join('')}\n`;
  });
  return lines.join('');
}

function info({ listener }: Call): Reply {
  const report = listener.node.cluster();
  const ranges = ledRanges(report);
  const assigned = ranges.reduce((sum, { first, last }) => sum + last - first + 1, 0);
  const fields = {
    cluster_enabled: 1,
    cluster_state: assigned === SLOT_COUNT ? 'ok' : 'fail',
    cluster_slots_assigned: assigned,
    cluster_slots_ok: assigned,
    cluster_slots_pfail: 0,
    cluster_slots_fail: 0,
    cluster_known_nodes: report.nodes.length,
    cluster_size: new Set(ranges.map(({ leader }) => leader.id)).size,
    cluster_current_epoch: report.version,
    cluster_my_epoch: report.version,
  };
  return Object.entries(fields)
    .map(([name, value]) => `${name}:${value}\r\n`)
    .join('');
}
