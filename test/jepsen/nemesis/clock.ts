/**
 * Wrong clocks. Wall clocks are wrong by any amount, set by libfaketime or by a module inside the node. The monotonic
 * clock is wrong by the allowed drift, or by so much more that the other nodes must notice.
 */
import type { NodeId } from '../../../raft/types.ts';
import { FAST_CLOCK, FAST_PPM_MAX, FOUND_MILLIS_MAX } from '../gained-time.ts';
import { between, chance, magnitude, pick, shuffled } from './draw.ts';
import { hold, type Nemesis, type NemesisContext, perform } from './nemesis.ts';

/** From a few milliseconds to a few days, in either direction. */
function offset({ random }: NemesisContext): number {
  return (chance(random, 2) ? 1 : -1) * magnitude(random, 4, 300_000_000);
}

function someNodes({ cluster, random }: NemesisContext): NodeId[] {
  const all = shuffled(random, [...cluster.members, ...cluster.spares]);
  return all.slice(0, between(random, 1, all.length));
}

/** A wall clock that is wrong until it is corrected, which is a jump as well. */
function wall(
  name: string,
  act: (context: NemesisContext, nodes: readonly NodeId[]) => Promise<unknown>,
): Nemesis {
  return {
    name,
    family: 'clock',
    needs: () => undefined,
    async run(context) {
      const nodes = someNodes(context);
      await perform(context, { name, nodes }, async () => {
        try {
          return await act(context, nodes);
        } finally {
          for (const id of nodes) context.cluster.node(id).setWallClock(0);
        }
      });
    },
  };
}

/** Several jumps. At each, every node jumps by an amount of its own. */
const jump = wall('wall-clock-jump', async (context, nodes) => {
  const { cluster, random, signal } = context;
  const jumps = 1 + random(5);
  const offsets: number[] = [];
  for (let i = 0; i < jumps && !signal.aborted; i += 1) {
    for (const id of nodes) {
      const offsetMillis = offset(context);
      offsets.push(offsetMillis);
      cluster.node(id).setWallClock(offsetMillis);
    }
    await hold(context, 100, 3_000);
  }
  return { offsets };
});

/** A constant wrong time, different on each node. */
const skew = wall('wall-clock-skew', async (context, nodes) => {
  const offsets = nodes.map(() => offset(context));
  for (const [i, id] of nodes.entries()) context.cluster.node(id).setWallClock(offsets[i] ?? 0);
  await hold(context, 1_000, 12_000);
  return { offsets };
});

const STROBES_MAX = 2_000;

/** Switches quickly between two times. */
const strobe = wall('wall-clock-strobe', async (context, nodes) => {
  const { cluster, random, signal, tempo } = context;
  const offsetMillis = offset(context);
  const periodMillis = magnitude(random, 2, 1_000);
  const endMillis = performance.now() + between(random, 500, 8_000) * tempo;
  let strobes = 0;
  while (performance.now() < endMillis && strobes < STROBES_MAX && !signal.aborted) {
    strobes += 1;
    for (const id of nodes) cluster.node(id).setWallClock(strobes % 2 === 1 ? offsetMillis : 0);
    await new Promise((resolve) => setTimeout(resolve, periodMillis));
  }
  return { offsetMillis, periodMillis, strobes };
});

const RATES: readonly [number, ...number[]] = [0.5, 0.9, 0.99, 1.01, 1.1, 1.5, 3];

const rate = wall('wall-clock-rate', async (context, nodes) => {
  const rates = nodes.map(() => pick(context.random, RATES));
  for (const [i, id] of nodes.entries()) context.cluster.node(id).setWallClock(0, rates[i] ?? 1);
  await hold(context, 1_000, 12_000);
  return { rates };
});

/**
 * The monotonic clocks, from which group time is made, drift apart, in total by as much as windows are widened for. It
 * is permanent: a node keeps its new rate.
 */
const drift: Nemesis = {
  name: 'monotonic-drift',
  family: 'clock',
  needs: () => undefined,
  async run(context) {
    const { cluster, random } = context;
    const nodes = someNodes(context);
    const ppmMax = Math.floor(cluster.config.rules.clockDriftPpm / 2);
    const ppms = nodes.map(() => between(random, -ppmMax, ppmMax));
    await perform(context, { name: this.name, nodes, detail: { ppms } }, async () => {
      for (const [i, id] of nodes.entries()) cluster.node(id).setMonotonicRate(ppms[i] ?? 0);
      await hold(context, 1_000, 6_000);
    });
  },
};

const CHECK_MILLIS = 100;
/** Half a minute after its clock is right again, plus the delay of the machine. */
const TAKEN_BACK_MILLIS_MAX = 60_000;

/** Waits until the node reports it. False if it does not in time. */
async function says(
  { cluster }: NemesisContext,
  id: NodeId,
  isSo: (clock: string | null | undefined, led: number) => boolean,
  timeoutMillis: number,
): Promise<boolean> {
  const endMillis = performance.now() + timeoutMillis;
  while (performance.now() < endMillis) {
    const status = await cluster.node(id).report();
    const clock = status?.nodes.find((node) => node.id === id)?.clock;
    const led = status?.partitions.filter(({ leader }) => leader === id).length ?? 0;
    if (status !== undefined && isSo(clock, led)) return true;
    await new Promise((resolve) => setTimeout(resolve, CHECK_MILLIS));
  }
  return false;
}

/**
 * The clock of a leader is too fast. The node must notice and lead nothing, and may lead again when its clock is right.
 */
const fast: Nemesis = {
  name: FAST_CLOCK,
  family: 'clock',
  isAlone: true,
  needs: () => undefined,
  async run(context) {
    const { cluster, random, signal } = context;
    const [id] = await cluster.byLeadership();
    if (id === undefined) return;
    const ppm = pick(random, [5_000, FAST_PPM_MAX]);
    await perform(context, { name: this.name, nodes: [id], detail: { ppm } }, async () => {
      cluster.node(id).setMonotonicRate(ppm);
      try {
        const isFound = await says(
          context,
          id,
          (clock, led) => clock === 'fast' && led === 0,
          FOUND_MILLIS_MAX,
        );
        if (!isFound) throw new Error(`node ${id} still leads, and its clock is ${ppm} ppm too fast`);
        await hold(context, 2_000, 6_000);
      } finally {
        cluster.node(id).setMonotonicRate(0);
      }
    });
    // Before that, a second fast clock would be one too many.
    if (signal.aborted) return;
    const isTakenBack = await says(context, id, (clock) => clock === 'fit', TAKEN_BACK_MILLIS_MAX);
    if (!isTakenBack) throw new Error(`node ${id} is still unfit long after its clock was right`);
  },
};

export const CLOCK_NEMESES: readonly Nemesis[] = [jump, skew, strobe, rate, drift, fast];
