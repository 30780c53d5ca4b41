/** The frame in which a node reports the state of its groups twice a second, for operators and tests. */
import type { NodeId } from '../../raft/types.ts';
import { CLOCK_STATES, type ClockState, type NodeFigures } from '../api/cluster-report.ts';
import type { HostPort } from '../api/node-address.ts';
import { array, decodeAddress, Fields, pack, unpack } from './fields.ts';
import { FrameError } from './frame.ts';

/** The state of one replica. */
export interface PartitionReport {
  readonly partition: number;
  readonly isLeader: boolean;
  readonly term: number;
  readonly commit: number;
  readonly applied: number;
  readonly lastIndex: number;
  /** Version of the rules that this replica has applied; 0 before the first. */
  readonly rulesVersion: number;
  /** Members of the partition, as far as this replica knows. */
  readonly members: readonly NodeId[];
  /** Above 0: everybody is denied for this long after a restore. */
  readonly restoredMillis?: number;
}

/** The state of one node. */
export interface NodeReport {
  readonly node: NodeId;
  readonly pid: number;
  /** How the node's clock compares to those of a majority. The node leads nothing unless it is `fit`. */
  readonly clock: ClockState;
  readonly partitions: readonly PartitionReport[];
  /** Address of the RESP listener, if there is one and the node knows it. */
  readonly resp?: HostPort;
  /** Version of the tokens that it knows; absent while it knows none. */
  readonly tokensVersion?: number;
  /** Highest protocol version that it speaks. */
  readonly speaks: number;
  /** Version of the package that it runs. */
  readonly release?: string;
  /** Figures about its current work. */
  readonly pace?: Pace;
}

/** Figures about a node's current work. */
export interface Pace {
  readonly figures: NodeFigures;
  /** Answer times of the last seconds, by step (`src/usage/answer-times.ts`). Those of several nodes can be added. */
  readonly times: readonly number[];
}

/** The maximum number of steps that are accepted; today's nodes send fewer. */
const STEPS_MAX = 256;
const RELEASE = /^[\w.+-]{1,64}$/;

/** Encodes a report. */
export function encodeNodeReport({
  pid,
  clock,
  partitions,
  resp,
  tokensVersion,
  speaks,
  release,
  pace,
}: NodeReport): Buffer {
  const rows = partitions.map((p) => [
    p.partition,
    p.isLeader,
    p.term,
    p.commit,
    p.applied,
    p.lastIndex,
    p.rulesVersion,
    p.members,
    p.restoredMillis,
  ]);
  const { host, port } = resp ?? {};
  const known = [pid, CLOCK_STATES.indexOf(clock), rows, host, port, tokensVersion, speaks, release];
  return pack(pace === undefined ? known : [...known, rowOf(pace)]);
}

function rowOf({ figures, times }: Pace): unknown[] {
  const { p99Millis, diskP99Millis, clockPpm, stateBytes, stateBytesMax } = figures;
  return [p99Millis, diskP99Millis, clockPpm, stateBytes, stateBytesMax, times];
}

function decodePace(row: unknown): Pace {
  const fields = new Fields(row);
  const figures = {
    p99Millis: fields.optionalNumber('p99'),
    diskP99Millis: fields.optionalNumber('disk p99'),
    clockPpm: fields.optionalNumber('clock ppm'),
    stateBytes: fields.integer('state bytes'),
    stateBytesMax: fields.integer('state bytes max'),
  };
  const times = fields.integers('times');
  if (times.length > STEPS_MAX) throw new FrameError(`times have more than ${STEPS_MAX} steps`);
  return { figures, times };
}

/** Decodes a report. @throws FrameError if it is malformed */
export function decodeNodeReport(node: NodeId, payload: Uint8Array): NodeReport {
  const fields = new Fields(unpack(payload));
  const pid = fields.integer('pid');
  const clock = fields.oneOf(CLOCK_STATES, 'clock');
  const partitions = array(fields.next('partitions'), 'partitions').map((row) => {
    const p = new Fields(row);
    const known = {
      partition: p.integer('partition'),
      isLeader: p.boolean('isLeader'),
      term: p.integer('term'),
      commit: p.integer('commit'),
      applied: p.integer('applied'),
      lastIndex: p.integer('lastIndex'),
      rulesVersion: p.integer('rulesVersion'),
      members: p.integers('members'),
    };
    const restoredMillis = p.optionalInteger('restoredMillis');
    return restoredMillis === undefined ? known : { ...known, restoredMillis };
  });
  const resp = decodeAddress(fields, 'resp');
  const tokensVersion = fields.optionalInteger('tokensVersion');
  const speaks = fields.integer('speaks');
  const release = fields.optionalString('release');
  if (release !== undefined && !RELEASE.test(release)) throw new FrameError('release is not a version');
  const pace = fields.isAtEnd ? undefined : decodePace(fields.next('pace'));
  return {
    node,
    pid,
    clock,
    partitions,
    speaks,
    ...(resp !== undefined && { resp }),
    ...(tokensVersion !== undefined && { tokensVersion }),
    ...(release !== undefined && { release }),
    ...(pace !== undefined && { pace }),
  };
}
