/**
 * Nodes that lose what they had synced: flipped bits, lost and old directories. Such a node must refuse to start, and
 * a new one takes its place. Never more of them at once than a partition can do without.
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

/** What a start with damaged data leads to. */
type Outcome = 'refused' | 'started';

async function startDamaged(context: NemesisContext, id: NodeId): Promise<Outcome> {
  const node = context.cluster.node(id);
  node.start();
  node.expectExit('damaged');
  const isUp = await node.isUp();
  if (isUp) node.expectExit(undefined);
  return isUp ? 'started' : 'refused';
}

/** The place of a node that must never run again is taken by a new one. Until then its data counts as damaged. */
async function replace(context: NemesisContext, id: NodeId): Promise<{ by: NodeId | undefined }> {
  await context.cluster.kill(id);
  const by = await context.replaceNode(context, id);
  if (by !== undefined) context.claims.repaired(id);
  return { by };
}

/** `harm` leaves a stopped node with damaged data, `mend` sees to it that all is well again. */
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
        context.log.write({ event: 'skipped', name, detail: 'as many nodes are damaged as may be' });
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

/** After a crash, only logs of this size are hit, in the first quarter: many batches follow there. */
const CRASHED_LOG_BYTES_MIN = 1 << 20;

/** How much of a file may be hit, from its beginning. */
function vulnerableBytes(name: string, bytes: number, isCleanStop: boolean): number {
  if (isCleanStop || name.endsWith('.ldb')) return bytes;
  return bytes < CRASHED_LOG_BYTES_MIN ? 0 : Math.floor(bytes / 4);
}

/**
 * One bit, anywhere in a log or table after a clean stop. After a crash the last batch of a log looks like a write
 * that was cut off, which no single node can tell from damage: the end of a log is left alone then.
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
    // Most tables are tiny: any of the files, or the largest.
    const bySize = files.toSorted((a, b) => b.end - a.end);
    const [file] = chance(random, 2) ? bySize : shuffled(random, files);
    if (file === undefined) return 'there was no file to hit';
    const content = readFileSync(file.path);
    const at = random(file.end);
    content.writeUInt8(content.readUInt8(at) ^ (1 << random(8)), at);
    writeFileSync(file.path, content);
    return { name: file.name, at, bytes: file.bytes, isCleanStop };
  },
  async (context, id) => {
    if ((await startDamaged(context, id)) === 'refused') return replace(context, id);
    // It read and verified everything: the bit was one of those that mean nothing.
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
      throw new Error(`node ${id} started without its data: it has forgotten its votes`);
    return replace(context, id);
  },
);

/** A complete and valid directory, only older than what the node has told others since. */
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
      // Nothing in the directory gives it away: it is told by whoever leads and remembers its acknowledgements.
      const wasNoticed = !cluster.node(id).isRunning;
      return { wasNoticed, ...(await replace(context, id)) };
    },
  ),
  isBeyondPromise: true,
};

export const DAMAGE_NEMESES: readonly Nemesis[] = [bitFlip, directoryLost, oldDirectory];
