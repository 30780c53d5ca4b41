/** Processes that die, stand still or start over again. Needs nothing but signals. */
import { magnitude, shuffled } from './draw.ts';
import {
  candidates,
  hold,
  type Nemesis,
  type NemesisContext,
  perform,
  revive,
  withVictims,
} from './nemesis.ts';

const SIZES = {
  one: () => 1,
  minority: (nodes: number) => Math.floor((nodes - 1) / 2),
  majority: (nodes: number) => Math.floor(nodes / 2) + 1,
  all: (nodes: number) => nodes,
} as const;
type Size = keyof typeof SIZES;

const nothing = (): undefined => undefined;

/** How many nodes a size means now. Leaders are preferred more often than not. */
async function chooseFrom(context: NemesisContext, size: Size): Promise<{ from: number[]; count: number }> {
  const from = await candidates(context, context.random(3) > 0);
  return { from, count: Math.max(1, SIZES[size](context.cluster.members.length)) };
}

function kill(size: Size): Nemesis {
  const name = `kill-${size}`;
  return {
    name,
    family: 'process',
    needs: nothing,
    async run(context) {
      const { from, count } = await chooseFrom(context, size);
      await withVictims(context, name, from, count, async (nodes) =>
        perform(context, { name, nodes }, async () => {
          await context.cluster.kill(...nodes);
          await hold(context, 0, 6_000);
          await revive(context, shuffled(context.random, nodes));
        }),
      );
    },
  };
}

function pause(size: Size): Nemesis {
  const name = `pause-${size}`;
  return {
    name,
    family: 'process',
    needs: nothing,
    async run(context) {
      const { cluster } = context;
      const { from, count } = await chooseFrom(context, size);
      await withVictims(context, name, from, count, async (nodes) =>
        perform(context, { name, nodes }, async () => {
          try {
            for (const id of nodes) cluster.node(id).pause();
            await hold(context, 50, 8_000);
          } finally {
            for (const id of shuffled(context.random, nodes)) {
              cluster.node(id).resume();
              await hold(context, 0, 300);
            }
          }
        }),
      );
    },
  };
}

/** Killed again and again while it starts: recovery must survive its own end. */
const restartLoop: Nemesis = {
  name: 'restart-loop',
  family: 'process',
  needs: nothing,
  async run(context) {
    const { cluster, random, signal } = context;
    const { from, count } = await chooseFrom(context, random(3) === 0 ? 'minority' : 'one');
    const rounds = 3 + random(6);
    await withVictims(context, this.name, from, count, async (nodes) =>
      perform(context, { name: this.name, nodes, detail: { rounds } }, async () => {
        for (let round = 0; round < rounds && !signal.aborted; round += 1) {
          await cluster.kill(...nodes);
          await hold(context, 0, 200);
          for (const id of nodes) cluster.node(id).start();
          // Starting takes about half a second: most kills fall into it.
          await hold(context, 0, 1_500);
        }
        await revive(context, nodes);
      }),
    );
  },
};

/** As an operator upgrades a cluster: each node in turn is asked to stop and started again. */
const rollingRestart: Nemesis = {
  name: 'rolling-restart',
  family: 'process',
  needs: nothing,
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
          // Not before: two of three would be away.
          if (!signal.aborted) await cluster.node(id).isReady();
        }
      }),
    );
  },
};

/** One node is asked to stop and started again. */
const gracefulRestart: Nemesis = {
  name: 'graceful-restart',
  family: 'process',
  needs: nothing,
  async run(context) {
    const { from } = await chooseFrom(context, 'one');
    await withVictims(context, this.name, from, 1, async ([id]) =>
      perform(context, { name: this.name, nodes: [id] }, async () => {
        await context.cluster.node(id).stop();
        await hold(context, 0, 3_000);
        await revive(context, [id]);
      }),
    );
  },
};

/** The event loop does nothing for a while: unlike after a pause, timers and sockets are then served in one heap. */
const stall: Nemesis = {
  name: 'event-loop-stall',
  family: 'process',
  needs: nothing,
  async run(context) {
    const { cluster, random, tempo } = context;
    const sizes: readonly [Size, ...Size[]] = ['one', 'one', 'minority', 'majority'];
    const { from, count } = await chooseFrom(context, sizes[random(sizes.length)] ?? 'one');
    const millis = Math.ceil(magnitude(random, 100, 5_000) * tempo);
    await withVictims(context, this.name, from, count, async (nodes) =>
      perform(context, { name: this.name, nodes, detail: { millis } }, async () => {
        for (const id of nodes) cluster.node(id).stall(millis);
        await new Promise((resolve) => setTimeout(resolve, millis));
        // It may have got the order late.
        for (const id of nodes) {
          if (!(await cluster.node(id).isUp())) throw new Error(`node ${id} ended during a stall`);
        }
      }),
    );
  },
};

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
