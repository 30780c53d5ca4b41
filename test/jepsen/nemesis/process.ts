/** Processes that are killed, paused or restarted. Needs only signals. */
import { magnitude, pick, shuffled } from './draw.ts';
import {
  candidates,
  hold,
  type Nemesis,
  type NemesisContext,
  perform,
  revive,
  type Victims,
  withVictims,
} from './nemesis.ts';

const SIZES = {
  one: () => 1,
  minority: (nodes: number) => Math.floor((nodes - 1) / 2),
  majority: (nodes: number) => Math.floor(nodes / 2) + 1,
  all: (nodes: number) => nodes,
} as const;
type Size = keyof typeof SIZES;

/** A fault of a drawn number of nodes. It prefers leaders more often than not. */
function strike(
  name: string,
  drawSize: (context: NemesisContext) => Size,
  fault: (context: NemesisContext, nodes: Victims) => Promise<unknown>,
): Nemesis {
  return {
    name,
    family: 'process',
    needs: () => undefined,
    async run(context) {
      const size = drawSize(context);
      const from = await candidates(context, context.random(3) > 0);
      const count = Math.max(1, SIZES[size](context.cluster.members.length));
      await withVictims(context, name, from, count, async (nodes) =>
        perform(context, { name, nodes }, async () => fault(context, nodes)),
      );
    },
  };
}

const kill = (size: Size): Nemesis =>
  strike(
    `kill-${size}`,
    () => size,
    async (context, nodes) => {
      await context.cluster.kill(...nodes);
      await hold(context, 0, 6_000);
      await revive(context, shuffled(context.random, nodes));
    },
  );

const pause = (size: Size): Nemesis =>
  strike(
    `pause-${size}`,
    () => size,
    async (context, nodes) => {
      const { cluster, random } = context;
      try {
        for (const id of nodes) cluster.node(id).pause();
        await hold(context, 50, 8_000);
      } finally {
        for (const id of shuffled(random, nodes)) {
          cluster.node(id).resume();
          await hold(context, 0, 300);
        }
      }
    },
  );

/** A node is killed again and again while it starts: its recovery must survive interruptions. */
const restartLoop = strike(
  'restart-loop',
  ({ random }) => (random(3) === 0 ? 'minority' : 'one'),
  async (context, nodes) => {
    const { cluster, log, random, signal } = context;
    const rounds = 3 + random(6);
    log.write({ event: 'note', name: 'restart-loop', nodes, detail: { rounds } });
    for (let round = 0; round < rounds && !signal.aborted; round += 1) {
      await cluster.kill(...nodes);
      await hold(context, 0, 200);
      for (const id of nodes) cluster.node(id).start();
      // A start takes about half a second, so most kills fall into it.
      await hold(context, 0, 1_500);
    }
    await revive(context, nodes);
  },
);

/** As in an operator's upgrade, each node in turn is asked to stop and started again. */
const rollingRestart: Nemesis = {
  name: 'rolling-restart',
  family: 'process',
  needs: () => undefined,
  async run(context) {
    const { cluster, random, signal } = context;
    const from = shuffled(random, cluster.members).filter((id) => cluster.node(id).isRunning);
    await withVictims(context, this.name, from, from.length, async (nodes) =>
      perform(context, { name: this.name, nodes }, async () => {
        for (const id of nodes) {
          if (signal.aborted) return;
          await cluster.node(id).stop();
          await hold(context, 0, 500);
          await revive(context, [id]);
          // Wait for this node first, otherwise two of three would be down.
          if (!signal.aborted) await cluster.node(id).isReady();
        }
      }),
    );
  },
};

/** One node is asked to stop and started again. */
const gracefulRestart = strike(
  'graceful-restart',
  () => 'one',
  async (context, [id]) => {
    await context.cluster.node(id).stop();
    await hold(context, 0, 3_000);
    await revive(context, [id]);
  },
);

/**
 * Blocks the event loop for a while. Unlike after a pause, all timers and sockets that are due are then served at once.
 */
const stall = strike(
  'event-loop-stall',
  ({ random }) => pick(random, ['one', 'one', 'minority', 'majority']),
  async (context, nodes) => {
    const { cluster, log, random, tempo } = context;
    const millis = Math.ceil(magnitude(random, 100, 5_000) * tempo);
    log.write({ event: 'note', name: 'event-loop-stall', nodes, detail: { millis } });
    for (const id of nodes) cluster.node(id).stall(millis);
    await new Promise((resolve) => setTimeout(resolve, millis));
    // The node may have received the order late.
    for (const id of nodes) {
      if (!(await cluster.node(id).isUp())) throw new Error(`node ${id} ended during a stall`);
    }
  },
);

export const PROCESS_NEMESES: readonly Nemesis[] = [
  kill('one'),
  kill('minority'),
  kill('majority'),
  kill('all'),
  pause('one'),
  pause('minority'),
  pause('majority'),
  pause('all'),
  restartLoop,
  rollingRestart,
  gracefulRestart,
  stall,
];
