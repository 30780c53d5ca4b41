/**
 * Nodes that lose synced data: flipped bits, lost directories and old directories. Such a node must refuse to start,
 * and a new node replaces it. Never more nodes at once than a partition can lose.
 */
import { cpSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NodeId } from '../../../raft/types.ts';
import { chance, shuffled } from './draw.ts';
import {
  candidates,
  hold,
  type Nemesis,
  type NemesisContext,
  perform,
  revive,
  withVictims,
} from './nemesis.ts';

/** The outcome of a start with damaged data. */
type Outcome = 'refused' | 'started';

async function startDamaged(context: NemesisContext, id: NodeId): Promise<Outcome> {
  const node = context.cluster.node(id);
  node.start();
  node.expectExit('damaged');
  const isUp = await node.isUp();
  if (isUp) node.expectExit(undefined);
  return isUp ? 'started' : 'refused';
}

/** Replaces a node that must never run again by a new one. Until then its data counts as damaged. */
async function replace(context: NemesisContext, id: NodeId): Promise<{ by: NodeId | undefined }> {
  await context.cluster.kill(id);
  const by = await context.replaceNode(context, id);
  if (by !== undefined) context.claims.repaired(id);
  return { by };
}

/** `harm` damages the data of a stopped node, `mend` restores a healthy state. */
function damage(
  name: string,
  harm: (context: NemesisContext, id: NodeId) => Promise<unknown>,
  mend: (context: NemesisContext, id: NodeId) => Promise<unknown>,
): Nemesis {
  return {
    name,
    family: 'disk',
    needs: () => undefined,
    async run(context) {
      const { claims } = context;
      if (!claims.mayDamage) {
        context.log.write({ event: 'skipped', name, detail: 'no more nodes may be damaged' });
        return;
      }
      await withVictims(context, name, await candidates(context, false), 1, async ([id]) => {
        claims.damage(id);
        await perform(context, { name, nodes: [id] }, async () => {
          const harmed = await harm(context, id);
          context.log.write({ event: 'note', name, nodes: [id], detail: harmed });
          return mend(context, id);
        });
      });
    },
  };
}

/**
 * After a crash only logs of at least this size are damaged, in their first quarter, so that many batches follow the
 * damage.
 */
const CRASHED_LOG_BYTES_MIN = 1 << 20;

/** How many bytes at the beginning of a file may be damaged. */
function vulnerableBytes(name: string, bytes: number, isCleanStop: boolean): number {
  if (isCleanStop || name.endsWith('.ldb')) return bytes;
  return bytes < CRASHED_LOG_BYTES_MIN ? 0 : Math.floor(bytes / 4);
}

/**
 * Flips one bit. After a clean stop it may be anywhere in a log or table. After a crash, damage to the last batch of a
 * log equals a write that was cut off. No single node can distinguish them, so the end of a log is left alone.
 */
const bitFlip = damage(
  'bit-flip',
  async ({ cluster, random }, id) => {
    const isCleanStop = chance(random, 2);
    if (isCleanStop) await cluster.node(id).stop();
    else await cluster.kill(id);
    const directory = cluster.node(id).machine.database;
    const files = readdirSync(directory)
      .filter((name) => /\.(log|ldb)$/.test(name))
      .map((name) => ({ name, path: join(directory, name), bytes: statSync(join(directory, name)).size }))
      .map((file) => ({ ...file, end: vulnerableBytes(file.name, file.bytes, isCleanStop) }))
      .filter(({ end }) => end > 0);
    // Most tables are tiny: choose any of the files, or the largest.
    const bySize = files.toSorted((a, b) => b.end - a.end);
    const [file] = chance(random, 2) ? bySize : shuffled(random, files);
    if (file === undefined) return 'there was no file to damage';
    const content = readFileSync(file.path);
    const at = random(file.end);
    content.writeUInt8(content.readUInt8(at) ^ (1 << random(8)), at);
    writeFileSync(file.path, content);
    return { name: file.name, at, bytes: file.bytes, isCleanStop };
  },
  async (context, id) => {
    if ((await startDamaged(context, id)) === 'refused') return replace(context, id);
    // The node read and verified everything: the bit had no meaning.
    context.claims.repaired(id);
    return 'harmless';
  },
);

const directoryLost = damage(
  'directory-lost',
  async ({ cluster }, id) => {
    await cluster.kill(id);
    const directory = cluster.node(id).machine.database;
    rmSync(realpathSync(directory), { recursive: true });
    rmSync(directory, { recursive: true, force: true });
    return 'lost';
  },
  async (context, id) => {
    if ((await startDamaged(context, id)) === 'started')
      throw new Error(`node ${id} started without its data, so it has forgotten its votes`);
    return replace(context, id);
  },
);

/** Gives a node an older copy of its directory: complete and valid, but without its later acknowledgements. */
const oldDirectory: Nemesis = {
  ...damage(
    'old-directory',
    async (context, id) => {
      const { cluster } = context;
      await cluster.node(id).stop();
      const directory = realpathSync(cluster.node(id).machine.database);
      const copy = join(cluster.directory, `copy-of-${id}`);
      cpSync(directory, copy, { recursive: true });
      await revive(context, [id]);
      await hold(context, 1_000, 8_000);
      await cluster.kill(id);
      rmSync(directory, { recursive: true });
      cpSync(copy, directory, { recursive: true });
      rmSync(copy, { recursive: true });
      return 'restored';
    },
    async (context, id) => {
      const { cluster } = context;
      if ((await startDamaged(context, id)) === 'started') {
        cluster.node(id).expectExit('older copy');
        await hold(context, 1_000, 6_000);
      }
      // Nothing in the directory reveals it. The leader finds out, since it remembers the node's acknowledgements.
      const wasNoticed = !cluster.node(id).isRunning;
      return { wasNoticed, ...(await replace(context, id)) };
    },
  ),
  isBeyondPromise: true,
};

export const DAMAGE_NEMESES: readonly Nemesis[] = [bitFlip, directoryLost, oldDirectory];
