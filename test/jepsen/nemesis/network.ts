/** Cut, one-way, slow, clogged and corrupted links between nodes, made by the fault proxies. Runs on every machine. */
import type { FaultsBetween } from '../fault-network.ts';
import type { Faults } from '../faults.ts';
import type { NodeId } from '../../../raft/types.ts';
import { between, chance, magnitude, pick, shuffled } from './draw.ts';
import { candidates, hold, type Nemesis, type NemesisContext, perform } from './nemesis.ts';

interface Topology {
  /** The affected nodes, for the log. */
  readonly nodes: readonly NodeId[];
  readonly hears: (from: NodeId, to: NodeId) => boolean;
}

/** Ways to break a direction: the sender notices, or does not, or its data arrives late and all at once. */
const BREAKS: readonly [Faults, ...Faults[]] = [{ cut: true }, { blackHole: true }, { clog: true }];

/** Includes the spares: they may join meanwhile. */
function allNodes({ cluster, random }: NemesisContext): NodeId[] {
  return shuffled(random, [...cluster.members, ...cluster.spares]);
}

async function oneNode(context: NemesisContext): Promise<NodeId> {
  const [first] = await candidates(context, context.random(4) > 0);
  return first ?? context.cluster.members[0] ?? 0;
}

/** Sets faults, holds them, removes them. `vary` changes the faults meanwhile. */
async function disturb(
  context: NemesisContext,
  event: { readonly name: string; readonly nodes: readonly NodeId[]; readonly detail: unknown },
  faults: FaultsBetween,
  vary: () => Promise<void> = async () => hold(context, 500, 12_000),
): Promise<void> {
  const { network } = context.cluster;
  await perform(context, event, async () => {
    const before = network.totals();
    try {
      network.setAll(faults);
      await vary();
    } finally {
      network.heal();
    }
    const after = network.totals();
    return {
      bytesPassed: after.bytesPassed - before.bytesPassed,
      bytesLost: after.bytesLost - before.bytesLost,
      bitsFlipped: after.bitsFlipped - before.bitsFlipped,
      resets: after.resets - before.resets,
    };
  });
}

function network(name: string, run: (context: NemesisContext) => Promise<void>): Nemesis {
  return { name, family: 'network', needs: () => undefined, run };
}

function partition(name: string, draw: (context: NemesisContext) => Promise<Topology | undefined>): Nemesis {
  return network(name, async (context) => {
    const topology = await draw(context);
    if (topology === undefined) {
      context.log.write({ event: 'skipped', name, detail: 'too few nodes for this fault' });
      return;
    }
    const broken = pick(context.random, BREAKS);
    await disturb(context, { name, nodes: topology.nodes, detail: broken }, (from, to) =>
      topology.hears(from, to) ? {} : broken,
    );
  });
}

const halves = partition('partition-halves', async (context) => {
  const members = new Set(shuffled(context.random, context.cluster.members));
  const minority = new Set([...members].slice(0, Math.floor((members.size - 1) / 2)));
  for (const id of allNodes(context)) if (!members.has(id) && chance(context.random, 2)) minority.add(id);
  return { nodes: [...minority], hears: (from, to) => minority.has(from) === minority.has(to) };
});

const isolateLeader = partition('partition-isolate', async (context) => {
  const one = await oneNode(context);
  return { nodes: [one], hears: (from, to) => from !== one && to !== one };
});

const oneWay = partition('partition-one-way', async (context) => {
  const one = await oneNode(context);
  const isMute = chance(context.random, 2);
  return { nodes: [one], hears: (from, to) => (isMute ? from : to) !== one };
});

const oneLink = partition('partition-one-link', async (context) => {
  const one = await oneNode(context);
  const other = shuffled(context.random, context.cluster.members).find((id) => id !== one) ?? 0;
  const pair = [one, other];
  return { nodes: pair, hears: (from, to) => !(pair.includes(from) && pair.includes(to)) };
});

const bridge = partition('partition-bridge', async (context) => {
  const [middle, ...others] = allNodes(context);
  if (middle === undefined) return undefined;
  const left = new Set(others.slice(0, Math.floor(others.length / 2)));
  return {
    nodes: [middle],
    hears: (from, to) => from === middle || to === middle || left.has(from) === left.has(to),
  };
});

const RING_NODES_MIN = 4;

/**
 * On a ring, each node hears as many neighbours as make a majority together with itself. No two nodes hear the same
 * ones.
 */
export function hearsOnRing(ring: readonly NodeId[], from: NodeId, to: NodeId): boolean {
  const reach = Math.ceil(Math.floor(ring.length / 2) / 2);
  const distance = Math.abs(ring.indexOf(from) - ring.indexOf(to));
  return Math.min(distance, ring.length - distance) <= reach;
}

const majoritiesRing = partition('partition-majorities-ring', async (context) => {
  const ring = shuffled(context.random, context.cluster.members);
  if (ring.length < RING_NODES_MIN) return undefined;
  return { nodes: ring, hears: (from, to) => hearsOnRing(ring, from, to) };
});

/** Breaks some directions, each with its own draw: all of them, those of one node, or one in three. */
async function someDirections(
  context: NemesisContext,
): Promise<{ nodes: NodeId[]; isHit: (from: NodeId, to: NodeId) => boolean }> {
  const one = await oneNode(context);
  const kind = context.random(3);
  if (kind === 0) return { nodes: context.cluster.members, isHit: () => true };
  if (kind === 1) return { nodes: [one], isHit: (from, to) => from === one || to === one };
  return { nodes: [], isHit: () => chance(context.random, 3) };
}

function degrade(name: string, draw: (context: NemesisContext) => Faults): Nemesis {
  return network(name, async (context) => {
    const faults = draw(context);
    const { nodes, isHit } = await someDirections(context);
    await disturb(context, { name, nodes, detail: faults }, (from, to) => (isHit(from, to) ? faults : {}));
  });
}

const slow = degrade('slow-links', ({ random }) => ({
  delayMillis: magnitude(random, 5, 500),
  jitterMillis: magnitude(random, 1, 200),
}));

const throttled = degrade('throttled-links', ({ random }) => ({
  bytesPerSecond: magnitude(random, 2_000, 200_000),
}));

const corrupt = degrade('corrupt-bytes', ({ random }) => ({ flipOneIn: magnitude(random, 3, 300) }));
const resets = degrade('reset-mid-frame', ({ random }) => ({ resetOneIn: magnitude(random, 3, 300) }));
const neverRead = degrade('never-read', () => ({ neverRead: true }));

/**
 * Directions clog one after the other and are freed in another order: old messages of former leaders come in bursts.
 */
const swizzle = network('swizzle-clog', async (context) => {
  const { cluster, random } = context;
  const ids = allNodes(context);
  const all = ids.flatMap((from) => ids.filter((to) => to !== from).map((to) => ({ from, to })));
  const some = shuffled(random, all).slice(0, between(random, 1, all.length));
  const nodes = cluster.members;
  const event = { name: 'swizzle-clog', nodes, detail: { directions: some.length } };
  await disturb(
    context,
    event,
    () => ({}),
    async () => {
      const stepMillis = Math.ceil(4_000 / some.length);
      for (const { from, to } of some) {
        cluster.network.set(from, to, { clog: true });
        await hold(context, 0, stepMillis);
      }
      await hold(context, 0, 3_000);
      for (const { from, to } of shuffled(random, some)) {
        cluster.network.set(from, to, {});
        await hold(context, 0, stepMillis);
      }
    },
  );
});

/** A node that disconnects and reconnects, faster or slower than elections take. */
const flapping = network('flapping', async (context) => {
  const { cluster, random, signal } = context;
  const one = await oneNode(context);
  const periodMillis = magnitude(random, 50, 2_000);
  const broken = pick(random, BREAKS);
  const rounds = Math.min(40, Math.ceil(10_000 / periodMillis));
  const event = { name: 'flapping', nodes: [one], detail: { ...broken, periodMillis } };
  await disturb(
    context,
    event,
    () => ({}),
    async () => {
      for (let round = 0; round < rounds && !signal.aborted; round += 1) {
        cluster.network.setAll((from, to) => (from === one || to === one ? broken : {}));
        await hold(context, 1, periodMillis);
        cluster.network.heal();
        await hold(context, 1, periodMillis);
      }
    },
  );
});

export const NETWORK_NEMESES: readonly Nemesis[] = [
  halves,
  isolateLeader,
  oneWay,
  oneLink,
  bridge,
  majoritiesRing,
  slow,
  throttled,
  corrupt,
  resets,
  neverRead,
  swizzle,
  flapping,
];
