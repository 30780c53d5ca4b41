/**
 * The world of a seed: its kind, its features (features.ts), its faults (kinds.ts), and its numbers (spreads.ts). The
 * order of the draws is fixed: one more or less changes the world of every seed.
 */
import { RAFT_DEFAULTS } from '../../raft/core-state.ts';
import type { MultiRaftOptions } from '../../raft/driver/multi-raft.ts';
import { ticksOf, type Timing } from '../../src/config/config.ts';
import type { QueueBounds } from '../../src/node/node-core-init.ts';
import { withDocuments } from './draw-documents.ts';
import { withLabels } from './draw-labels.ts';
import { withOperators } from './draw-operators.ts';
import { drawTables, DRIFT_PPM, withMeters } from './draw-rules.ts';
import { drawFeatures, type Feature, type Theme } from './features.ts';
import { drawFaults, drawKind, type FaultName, type Kind } from './kinds.ts';
import type { Random } from './random.ts';
import {
  addressOf,
  type ClientSettings,
  incarnationOf,
  type NetworkSettings,
  type Settings,
} from './settings.ts';
import { drawPartitions, type Spread, SPREAD_OF } from './spreads.ts';

const MACHINES_MAX = 9;
/** How long faults last in worlds with many partitions, where every step is expensive. */
const BUSY_MILLIS_OF_MANY = 5_000;
const LEADER_DRIFT_PPM = 120;
/** For a small heap. */
const STATE_BYTES_SMALL = 40_000;

/** The known part of a world while its numbers are drawn. */
interface Draft {
  readonly random: Random;
  readonly kind: Kind;
  readonly features: ReadonlySet<Feature>;
  readonly faults: readonly FaultName[];
  readonly spread: Spread;
  readonly partitions: number;
}

export function drawSettings(random: Random, theme: Theme = {}): Settings {
  const kind = theme.kind ?? drawKind(random);
  const features = drawFeatures(random, kind, theme.features ?? []);
  const faults = drawFaults(random, kind, theme.faults ?? []);
  const spread = SPREAD_OF[kind];
  const partitions = drawPartitions(random, spread, features.has('manyPartitions'));
  const draft = { random, kind, features, faults, spread, partitions };
  return withFeatures(random, drawNumbers(draft));
}

function drawNumbers(draft: Draft): Settings {
  const { random, kind, features, faults, spread, partitions } = draft;
  const nodes = random.pick(spread.nodes);
  const timing = drawTiming(draft);
  const tables = drawTables(random, timing, { spread, isSmall: features.has('smallStates') });
  const rules = tables[0];
  if (rules === undefined) throw new RangeError('there is at least one rule table');
  const spares = features.has('members') ? Math.min(random.pick(spread.spares), MACHINES_MAX - nodes) : 0;
  const ids = Array.from({ length: nodes }, (_, i) => i + 1);
  const driftPpm = drawDrift(draft);
  const busyMillis =
    partitions > spread.partitionsAtLength ? BUSY_MILLIS_OF_MANY : random.pick(spread.busyMillis);
  const idle = features.has('idleness')
    ? { atMillis: busyMillis / 2, forMillis: random.between(65_000, partitions > 4 ? 70_000 : 150_000) }
    : undefined;
  return {
    kind,
    features: [...features],
    nodes,
    spares,
    changeMeanMillis: spares > 0 ? random.pick(spread.changeMeanMillis) : 0,
    zombies: 0.3,
    timing,
    raft: drawRaft(draft, timing),
    stateBytesMax: features.has('smallStates') && random.chance(0.4) ? STATE_BYTES_SMALL : Infinity,
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
    network: drawNetwork(draft, timing),
    disk: {
      syncMeanMillis: features.has('slowDisks') ? 40 : random.pick(spread.syncMeanMillis),
      keep: random.pick([0, 0.5, 1]),
    },
    clients: drawClients(draft, timing),
    faults,
    faultMeanMillis: random.pick(spread.faultMeanMillis),
    safetyMillis: busyMillis + (idle?.forMillis ?? 0),
    idle,
    queues: features.has('shortQueues') ? drawQueues(random) : undefined,
    driftPpm,
    maxDriftPpm: driftPpm[1] === 0 ? 0 : LEADER_DRIFT_PPM,
    wallSkewMillis: features.has('wallSkew') ? random.pick([50, 60_000]) : 0,
    lag: features.has('lag') ? random.pick([0.1, 0.5]) : 0,
  };
}

/** Applies the features that change several numbers. */
function withFeatures(random: Random, numbers: Settings): Settings {
  const has = (feature: Feature): boolean => numbers.features.includes(feature);
  let drawn = numbers;
  if (has('meters')) {
    const tables = withMeters(random, drawn.tables, has('smallStates'));
    drawn = { ...drawn, tables, config: { ...drawn.config, rules: tables[0] ?? drawn.config.rules } };
  }
  if (has('documents')) drawn = withDocuments(random, drawn);
  if (has('customers')) drawn = withOperators(random, drawn);
  // A batch has about ten items, so batches are rare enough that a run takes no longer.
  if (has('batches'))
    drawn = { ...drawn, batches: { meanMillis: drawn.clients.meanMillis * random.pick([30, 100]) } };
  return has('labels') ? withLabels(random, drawn) : drawn;
}

/** Groups rest after two election timeouts without a request. */
function drawBursts(random: Random, { electionMillis }: Timing): ClientSettings['bursts'] {
  return {
    burstMillis: random.between(50, electionMillis),
    sleepMillis: random.between(3, 10) * electionMillis,
  };
}

function drawNetwork({ random, features, spread }: Draft, timing: Timing): NetworkSettings {
  const pick = (feature: Feature, among: readonly number[]): number =>
    features.has(feature) ? random.pick(among) : 0;
  return {
    delayMinMillis: random.pick([0.1, 0.5, 2]),
    delayMeanMillis: features.has('farApart') ? 20 : random.pick(spread.delayMeanMillis),
    slowFraction: pick('slowPaths', [0.3, 1]),
    // A question and its answer take a large part of a deadline; an election must still be possible.
    slowMillis: Math.min(timing.requestDeadlineMillis / 10, timing.electionMillis / 8),
    crawlFraction: pick('crawlingPaths', [0.2, 0.5]),
    crawlMillis: timing.requestDeadlineMillis * random.pick([0.3, 0.7, 1.5]),
    drop: pick('drops', [0.01, 0.1]),
    duplicate: pick('duplicates', [0.01, 0.1]),
    corrupt: pick('corruption', [0.001, 0.02]),
    late: pick('lateFrames', [0.5]),
    closesSilent: random.chance(0.6),
  };
}

function drawClients({ random, kind, features, spread, partitions }: Draft, timing: Timing): ClientSettings {
  const pick = (feature: Feature, among: readonly number[], otherwise = 0): number =>
    features.has(feature) ? random.pick(among) : otherwise;
  return {
    meanMillis: random.pick(spread.clientMeanMillis),
    atOnceMax: random.pick([4, 16, 40]),
    users: random.pick(partitions > 4 ? [20, 100] : [2, 5, 20]),
    eventUsers: pick('timestamps', [2, 5]),
    withId: pick('ids', [0.7, 1], 0.2),
    reuse: pick('reusedIds', [0.05, 0.15]),
    again: pick('repeats', [0.3, 0.6]),
    withCost: pick('costs', [0.3, 0.8], 0.1),
    costsUpToLimit: features.has('costs') && random.chance(0.7),
    strangeTimes: features.has('strangeTimes'),
    joint: pick('severalLimits', [0.2, 0.6]),
    // This draws nothing, so other worlds stay the same.
    settled: features.has('refunds') && features.has('costs') ? 0.15 : 0,
    bursts: kind === 'idle' ? drawBursts(random, timing) : undefined,
    isPatient: !features.has('impatience'),
  };
}

/** Small enough that a crowd fills each of them. */
function drawQueues(random: Random): QueueBounds {
  return {
    openMax: random.pick([20, 60, 1_000]),
    pendingMax: random.pick([3, 20, 1_000]),
    inflightMax: random.pick([5, 40, 1_000]),
    batchMax: random.pick([1, 4, 1_000]),
  };
}

/** No two rates differ by more than allowed, and the fastest is as fast as allowed. */
function drawDrift({ random, features }: Draft): readonly [number, number] {
  const max = random.pick([LEADER_DRIFT_PPM, LEADER_DRIFT_PPM, random.between(-DRIFT_PPM, DRIFT_PPM)]);
  return features.has('drift') ? [max - DRIFT_PPM + 1, max] : [0, 0];
}

function drawTiming({ random, features, spread }: Draft): Timing {
  const tickMillis = random.pick(spread.tickMillis);
  const deadlines = features.has('shortDeadlines')
    ? [300]
    : features.has('longDeadlines')
      ? [10_000]
      : [1_000, 1_000, 3_000];
  return {
    tickMillis,
    heartbeatMillis: tickMillis * random.pick([1, 2]),
    electionMillis: tickMillis * random.pick([8, 12]),
    requestDeadlineMillis: random.pick(deadlines),
  };
}

/** Small numbers, so that every bound is reached: snapshots, full windows of appends, several turns to apply. */
function drawRaft(
  { random, features, faults, partitions }: Draft,
  timing: Timing,
): Partial<MultiRaftOptions> {
  const appendBytesMax = features.has('smallMessages')
    ? random.pick([1, 200])
    : random.pick([2_000, 1 << 20]);
  // With snapshots of nearly every state one is on its way at every moment of a change.
  const needsThem = faults.includes('longSuffix') || faults.includes('lateForChange');
  const isEager = features.has('eagerSnapshots') || (needsThem && random.chance(0.8));
  return {
    raft: {
      ...RAFT_DEFAULTS,
      ...ticksOf(timing),
      appendBytesMax,
      inflight: {
        // Few small messages at a time would be an overload, and that is no fault.
        messagesMax: appendBytesMax < 2_000 ? 256 : random.pick([2, 16, 256]),
        // Down to a few entries: the window is full while one message is on its way.
        bytesMax: features.has('smallWindows') ? random.pick([2_000, 8_000]) : 1 << 20,
      },
      uncommittedBytesMax: features.has('smallLogs') ? 2_000 : 1 << 20,
    },
    snapshotEveryBytes: random.pick(isEager ? [150, 400] : [1_000, 4_000, 20_000, 1 << 20]),
    keepLogBytes: isEager ? 0 : random.pick([0, 500, 4_000]),
    applyBytesMax: random.pick([200, 4 << 20]),
    snapshotWriteBytesMax: random.pick([1, 1 << 20]),
    // The smallest takes two or three entries of all groups: on a slow disk that would be less than clients ask for.
    writeBytesMax:
      features.has('smallWrites') && !features.has('slowDisks')
        ? random.pick([Math.max(1_200, 300 * partitions), Math.max(5_000, 600 * partitions)])
        : 1 << 20,
    streams: { outgoingMax: random.pick([1, 4]), silentTicksMax: 40 },
    balanceTicks: random.pick([10, 25]),
  };
}
