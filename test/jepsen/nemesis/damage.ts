/**
 * Nodes that lose what they had synced: flipped bits, lost and old directories. Such a node must refuse to start, and
 * a new one takes its place. Never more of them at once than a partition can do without.
 */
import { cpSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
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
  const { cluster } = context;
  cluster.start(id);
  cluster.expectExit(id, 'damaged');
  const isUp = await cluster.isUp(id);
  if (isUp) cluster.expectExit(id, undefined);
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

/** LevelDB's logs this short may hold one batch only. */
const LOG_BYTES_MIN = 4_096;

/**
 * One bit, anywhere in a log or table after a clean stop. After a crash the last batch of a log looks like a write
 * that was cut off, which no single node can tell from damage: there, a log is only hit in its first half.
 */
const bitFlip = damage(
  'bit-flip',
  async ({ cluster, random }, id) => {
    const isCleanStop = chance(random, 2);
    if (isCleanStop) await cluster.stop(id);
    else await cluster.kill(id);
    const directory = cluster.databaseOf(id);
    const files = shuffled(
      random,
      readdirSync(directory).filter((name) => /\.(log|ldb)$/.test(name)),
    );
    for (const name of files) {
      const path = join(directory, name);
      const bytes = readFileSync(path);
      const isLog = name.endsWith('.log');
      if (bytes.byteLength === 0 || (isLog && bytes.byteLength < LOG_BYTES_MIN)) continue;
      const end = isLog && !isCleanStop ? Math.floor(bytes.byteLength / 2) : bytes.byteLength;
      const at = random(end);
      bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << random(8)), at);
      writeFileSync(path, bytes);
      return { name, at, bytes: bytes.byteLength, isCleanStop };
    }
    return 'there was no file large enough';
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
    const directory = cluster.databaseOf(id);
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
      await cluster.stop(id);
      const directory = realpathSync(cluster.databaseOf(id));
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
        cluster.expectExit(id, 'older copy');
        await hold(context, 1_000, 6_000);
      }
      // Nothing in the directory gives it away: it is told by whoever leads and remembers its acknowledgements.
      const wasNoticed = !cluster.isRunning(id);
      return { wasNoticed, ...(await replace(context, id)) };
    },
  ),
  isBeyondPromise: true,
};

export const DAMAGE_NEMESES: readonly Nemesis[] = [bitFlip, directoryLost, oldDirectory];
