/**
 * Which world a seed gives. Swarm testing: each run leaves most faults out, so that those that remain can go far. Every draw
 * has its place in the order: one more or less is another world for every seed.
 */
import { RAFT_DEFAULTS } from '../../raft/core-state.ts';
import type { MultiRaftOptions } from '../../raft/driver/multi-raft.ts';
import { ticksOf, type Timing } from '../../src/config/config.ts';
import type { QueueBounds } from '../../src/node/node-core-init.ts';
import { PARTITION_BYTES_DEFAULT } from '../../src/limiter/rules.ts';
import { withMeters } from './draw-meters.ts';
import { maybeWithDocuments } from './draw-documents.ts';
import { maybeWithLabels } from './draw-labels.ts';
import { maybeWithOperators } from './draw-operators.ts';
import { DRIFT_PPM, drawTables } from './draw-rules.ts';
import { drawFaults, drawKind, type FaultName, type Kind } from './kinds.ts';
import type { Random } from './random.ts';
import {
  addressOf,
  type ClientSettings,
  incarnationOf,
  type NetworkSettings,
  type Settings,
} from './settings.ts';
import { type Spread, SPREAD_OF } from './spreads.ts';

const MACHINES_MAX = 9;
const LEADER_DRIFT_PPM = 120;

/** `given`: the kind, which the seed tells otherwise. */
export function drawSettings(random: Random, given?: Kind): Settings {
  const nodes = random.pick([3, 3, 3, 4, 5, 5, 7]);
  const kind = given ?? drawKind(random);
  const faults = drawFaults(random, kind);
  const spread = SPREAD_OF[kind];
  const partitions = spread.partitions(random);
  const timing = drawTiming(random, spread);
  const tables = drawTables(random, timing, spread);
  const rules = tables[0];
  if (rules === undefined) throw new RangeError('there is at least one rule table');
  const spares = Math.min(random.pick(spread.spares), MACHINES_MAX - nodes);
  const ids = Array.from({ length: nodes }, (_, i) => i + 1);
  const driftPpm = drawDrift(random);
  const busyMillis = partitions > spread.partitionsAtLength ? 10_000 : random.pick(spread.busyMillis);
  const idle = random.chance(0.14)
    ? { atMillis: busyMillis / 2, forMillis: random.between(65_000, partitions > 4 ? 70_000 : 150_000) }
    : undefined;
  const drawn: Settings = {
    kind,
    nodes,
    spares,
    changeMeanMillis: spares > 0 ? random.pick(spread.changeMeanMillis) : 0,
    zombies: 0.3,
    timing,
    raft: drawRaft(random, { timing, partitions, spread, faults }),
    stateBytesMax: random.pick([Infinity, Infinity, Infinity, Infinity, 40_000]),
    config: {
      clusterId: 'sim',
      founders: ids.map((id) => ({ id, incarnation: incarnationOf(id) })),
      nodes: ids.map(addressOf),
      partitions,
      // With spares, some nodes hold only some partitions, and moving one node moves little.
      replicas: random.pick([3, 3, Math.min(4, nodes), Math.min(5, nodes)]),
      rules,
      timing,
      freeFloorBytes: 0,
    },
    tables,
    network: drawNetwork(random, timing, spread),
    disk: { syncMeanMillis: random.pick(spread.syncMeanMillis), keep: random.pick([0, 0.5, 1]) },
    clients: drawClients(random, partitions),
    faults,
    faultMeanMillis: random.pick(spread.faultMeanMillis),
    safetyMillis: busyMillis + (idle?.forMillis ?? 0),
    idle,
    queues: random.chance(0.15) ? drawQueues(random) : undefined,
    driftPpm,
    maxDriftPpm: driftPpm[1] === 0 ? 0 : LEADER_DRIFT_PPM,
    wallSkewMillis: random.pick(spread.wallSkewMillis),
    lag: random.pick(spread.lag),
  };
  return counted(random, drawn);
}

/**
 * Drawn last: whoever counts by logs alone, under one limit each, lives in the world that the seed gave before there was
 * anything else.
 */
function counted(random: Random, drawn: Settings): Settings {
  const isSmall = drawn.tables.some(({ partitionBytesMax }) => partitionBytesMax < PARTITION_BYTES_DEFAULT);
  const tables = withMeters(random, drawn.tables, isSmall || drawn.stateBytesMax < Infinity);
  const [rules = drawn.config.rules] = tables;
  const joint = random.pick([0, 0, 0.2, 0.6]);
  const bursts = drawn.kind === 'idle' ? drawBursts(random, drawn.timing) : undefined;
  const clients = { ...drawn.clients, joint, bursts };
  const whole = { ...drawn, tables, clients, config: { ...drawn.config, rules } };
  const asked = maybeWithBatches(random, maybeWithOperators(random, maybeWithDocuments(random, whole)));
  return maybeWithLabels(random, asked);
}

/** A batch has some ten items on average: so rarely that a run takes no longer for them. */
function maybeWithBatches(random: Random, drawn: Settings): Settings {
  const { clients, documents, kind } = drawn;
  // Groups that nobody asks must come to rest.
  if (kind === 'idle' || !random.chance(documents === undefined ? 0.25 : 0.5)) return drawn;
  return { ...drawn, batches: { meanMillis: clients.meanMillis * random.pick([60, 200]) } };
}

/** Groups rest after two election timeouts without a request. */
function drawBursts(random: Random, { electionMillis }: Timing): ClientSettings['bursts'] {
  return {
    burstMillis: random.between(50, electionMillis),
    sleepMillis: random.between(3, 10) * electionMillis,
  };
}

function drawNetwork(random: Random, timing: Timing, spread: Spread): NetworkSettings {
  return {
    delayMinMillis: random.pick([0.1, 0.5, 2]),
    delayMeanMillis: random.pick(spread.delayMeanMillis),
    slowShare: random.pick(spread.slowShare),
    // A question and its answer take a good part of a deadline; an election must still be possible.
    slowMillis: Math.min(timing.requestDeadlineMillis / 10, timing.electionMillis / 8),
    crawlShare: random.pick(spread.crawlShare),
    crawlMillis: timing.requestDeadlineMillis * random.pick([0.3, 0.7, 1.5]),
    drop: random.pick(spread.drop),
    duplicate: random.pick([0, 0, 0.01, 0.1]),
    corrupt: random.pick([0, 0, 0, 0.001, 0.02]),
    late: random.pick([0, 0.5]),
    closesSilent: random.chance(0.6),
  };
}

function drawClients(random: Random, partitions: number): ClientSettings {
  return {
    meanMillis: random.pick([10, 40, 150]),
    users: random.pick(partitions > 4 ? [20, 100] : [2, 5, 20]),
    eventUsers: random.pick([0, 2, 5]),
    withId: random.pick([0.2, 0.7, 1]),
    reuse: random.pick([0, 0.05, 0.3]),
    again: random.pick([0, 0.1, 0.5]),
    withCost: random.pick([0.1, 0.3, 0.8]),
    costsUpToLimit: random.chance(0.5),
    strangeTimes: random.chance(0.5),
    joint: 0,
    bursts: undefined,
  };
}

/** So small that a crowd fills each of them. */
function drawQueues(random: Random): QueueBounds {
  return {
    openMax: random.pick([20, 60, 1_000]),
    pendingMax: random.pick([3, 20, 1_000]),
    inflightMax: random.pick([5, 40, 1_000]),
    batchMax: random.pick([1, 4, 1_000]),
  };
}

/** No two differ by more than they may, and the fastest is as fast as it may be. */
function drawDrift(random: Random): readonly [number, number] {
  const max = random.pick([0, LEADER_DRIFT_PPM, LEADER_DRIFT_PPM, random.between(-DRIFT_PPM, DRIFT_PPM)]);
  return max === 0 ? [0, 0] : [max - DRIFT_PPM + 1, max];
}

function drawTiming(random: Random, spread: Spread): Timing {
  const tickMillis = spread.tickMillis(random);
  return {
    tickMillis,
    heartbeatMillis: tickMillis * random.pick([1, 2]),
    electionMillis: tickMillis * random.pick([8, 12]),
    requestDeadlineMillis: random.pick([300, 300, 1_000, 1_000, 1_000, 3_000, 10_000]),
  };
}

/** Small numbers, so that every bound is met: snapshots, full windows of appends, several turns to apply. */
function drawRaft(
  random: Random,
  given: {
    readonly timing: Timing;
    readonly partitions: number;
    readonly spread: Spread;
    readonly faults: readonly FaultName[];
  },
): Partial<MultiRaftOptions> {
  const { timing, partitions, spread, faults } = given;
  const appendBytesMax = random.pick(spread.appendBytesMax);
  // With snapshots of nearly every state one is on its way at every moment of a change.
  const needsThem = faults.includes('longSuffix') || faults.includes('lateForChange');
  const isEager = random.chance(Math.max(spread.eager, needsThem ? 0.8 : 0));
  return {
    raft: {
      ...RAFT_DEFAULTS,
      ...ticksOf(timing),
      appendBytesMax,
      inflight: {
        // Few small messages at a time would be an overload, and that is no fault.
        messagesMax: appendBytesMax < 2_000 ? 256 : random.pick([2, 16, 256]),
        bytesMax: 1 << 20,
      },
      uncommittedBytesMax: random.pick([2_000, 1 << 20]),
    },
    snapshotEveryBytes: random.pick(isEager ? [150, 400] : [1_000, 4_000, 20_000, 1 << 20]),
    keepLogBytes: isEager ? 0 : random.pick([0, 500, 4_000]),
    applyBytesMax: random.pick([200, 4 << 20]),
    snapshotWriteBytesMax: random.pick([1, 1 << 20]),
    // The smallest takes two or three entries of all groups.
    writeBytesMax: random.pick([
      Math.max(1_200, 300 * partitions),
      Math.max(5_000, 600 * partitions),
      1 << 20,
    ]),
    streams: { outgoingMax: random.pick([1, 4]), silentTicksMax: 40 },
    balanceTicks: random.pick([10, 25]),
  };
}
