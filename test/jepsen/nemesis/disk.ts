/** Disks that are slow or full, fail a sync or lose power. All synced data survives. */
import type { NodeId } from '../../../raft/types.ts';
import { eventually } from '../../cluster/harness.ts';
import { lacks } from '../machine.ts';
import { between, magnitude, shuffled } from './draw.ts';
import {
  candidates,
  hold,
  type Nemesis,
  type NemesisContext,
  perform,
  revive,
  withVictims,
} from './nemesis.ts';

/** sysexits.h EX_SOFTWARE: the exit code of a node that cannot trust its disk. */
const EXIT_FATAL = 70;
/** The time for the node to write. The fault has no effect before that. */
const EXIT_MILLIS_MAX = 10_000;
/** A process that met the fault just before its end has exited after this time. */
const SETTLE_MILLIS = 300;

/** Waits until the fault ends the node, removes the fault, and starts the node again. */
async function endAndRevive(context: NemesisContext, id: NodeId, lift: () => void): Promise<string> {
  const { cluster } = context;
  try {
    await eventually(
      `node ${id} ends`,
      () => (cluster.node(id).isRunning && !context.signal.aborted ? undefined : true),
      EXIT_MILLIS_MAX,
    ).catch(() => undefined);
  } finally {
    lift();
  }
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MILLIS));
  const hasEnded = !cluster.node(id).isRunning;
  const last = cluster.exits.findLast((exit) => exit.id === id);
  if (hasEnded && last?.code !== EXIT_FATAL)
    throw new Error(`node ${id} ended with ${last?.signal ?? last?.code}, expected ${EXIT_FATAL}`);
  await revive(context, [id]);
  cluster.node(id).expectExit(undefined);
  return hasEnded ? 'the node stopped itself' : 'the node wrote nothing meanwhile';
}

const syncError: Nemesis = {
  name: 'sync-error',
  family: 'disk',
  needs: () => lacks.compiler(),
  async run(context) {
    const { cluster, random } = context;
    const from = await candidates(context, random(2) === 0);
    await withVictims(context, this.name, from, 1, async ([id]) =>
      perform(context, { name: this.name, nodes: [id] }, async () => {
        cluster.node(id).expectExit(this.name);
        cluster.node(id).setSyncFault('fail 1');
        return endAndRevive(context, id, () => cluster.node(id).setSyncFault(''));
      }),
    );
  },
};

const slowDisk: Nemesis = {
  name: 'slow-disk',
  family: 'disk',
  needs: () => lacks.compiler(),
  async run(context) {
    const { cluster, random } = context;
    const millis = magnitude(random, 20, 2_000);
    const from = await candidates(context, random(3) > 0);
    // No node is claimed: a slow node may be killed as well.
    const nodes = random(3) === 0 ? from : from.slice(0, 1);
    await perform(context, { name: this.name, nodes, detail: { millis } }, async () => {
      try {
        for (const id of nodes) cluster.node(id).setSyncFault(`stall ${millis}`);
        await hold(context, 1_000, 10_000);
      } finally {
        for (const id of nodes) cluster.node(id).setSyncFault('');
      }
    });
  },
};

const diskFull: Nemesis = {
  name: 'disk-full',
  family: 'disk',
  needs: () => lacks.tmpfs(),
  async run(context) {
    const { cluster } = context;
    const from = (await candidates(context, false)).filter(
      (id) => cluster.node(id).machine.volume?.kind === 'tmpfs',
    );
    await withVictims(context, this.name, from, 1, async ([id]) =>
      perform(context, { name: this.name, nodes: [id] }, async () => {
        const volume = cluster.node(id).machine.volume;
        try {
          // With this little space its leaders only refuse requests. Then the disk fills up completely.
          volume?.fill(Math.floor(cluster.config.freeFloorBytes / 2));
          await hold(context, 1_000, 4_000);
          cluster.node(id).expectExit(this.name);
          volume?.fill(0);
        } catch (error) {
          volume?.empty();
          throw error;
        }
        return endAndRevive(context, id, () => volume?.empty());
      }),
    );
  },
};

/** Cuts the power of one node, or of all at once. Every answer was synced before it was sent, so none may be lost. */
const powerCut: Nemesis = {
  name: 'power-cut',
  family: 'disk',
  needs: () => lacks.ext4(),
  async run(context) {
    const { cluster, random } = context;
    const all = await candidates(context, random(2) === 0);
    const from = all.filter((id) => cluster.node(id).machine.volume?.kind === 'ext4');
    const count = from.length === 0 ? 1 : between(random, 1, from.length);
    await withVictims(context, this.name, from, count, async (nodes) =>
      perform(context, { name: this.name, nodes }, async () => {
        await cluster.cutPower(...nodes);
        await hold(context, 0, 3_000);
        await revive(context, shuffled(random, nodes));
      }),
    );
  },
};

export const DISK_NEMESES: readonly Nemesis[] = [syncError, slowDisk, diskFull, powerCut];
