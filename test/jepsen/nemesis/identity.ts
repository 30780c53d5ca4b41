/**
 * Operator errors: a changed cluster fact in one node's file, or a node whose lost disk was prepared again under its
 * old id. The first node must not start, and the second must not take part.
 */
import type { NodeId } from '../../../raft/types.ts';
import { eventually } from '../../cluster/harness.ts';
import {
  candidates,
  hold,
  type Nemesis,
  type NemesisContext,
  perform,
  revive,
  withVictims,
} from './nemesis.ts';

const REFUSED_MILLIS_MAX = 20_000;

/** Starts a node that should refuse to start. If it runs nevertheless, clients get some time to notice. */
async function startUnsound(
  context: NemesisContext,
  id: NodeId,
  reason: string,
): Promise<'refused' | 'runs'> {
  const { cluster } = context;
  cluster.node(id).start();
  cluster.node(id).expectExit(reason);
  if (!(await cluster.node(id).isUp())) return 'refused';
  await hold(context, 8_000, 12_000);
  await cluster.kill(id);
  return 'runs';
}

const editedFile: Nemesis = {
  name: 'edited-file',
  family: 'membership',
  needs: () => undefined,
  async run(context) {
    const { cluster } = context;
    await withVictims(context, this.name, await candidates(context, false), 1, async ([id]) =>
      perform(context, { name: this.name, nodes: [id] }, async () => {
        await cluster.kill(id);
        const { partitions } = cluster.config;
        await cluster.node(id).editFile({ partitions: partitions - 1 });
        const outcome = await startUnsound(context, id, 'edited file');
        await cluster.node(id).editFile({ partitions });
        await revive(context, [id]);
        return outcome;
      }),
    );
  },
};

const madeAnew: Nemesis = {
  name: 'made-anew',
  family: 'membership',
  needs: () => undefined,
  async run(context) {
    const { claims, cluster, log } = context;
    if (!claims.mayDamage) {
      log.write({ event: 'skipped', name: this.name, detail: 'no more nodes may be damaged' });
      return;
    }
    await withVictims(context, this.name, await candidates(context, false), 1, async ([id]) => {
      claims.damage(id);
      await perform(context, { name: this.name, nodes: [id] }, async () => {
        await cluster.kill(id);
        await cluster.node(id).makeAnew();
        cluster.node(id).start();
        cluster.node(id).expectExit('made anew');
        // A founder does not even start: its incarnation is a fact.
        const outcome = await eventually(
          `node ${id} with a new database is refused`,
          async () => {
            if (!cluster.node(id).isRunning) return 'does not start';
            const keyStatus = (await cluster.node(id).report())?.self.membership;
            return keyStatus === 'refused' ? keyStatus : undefined;
          },
          REFUSED_MILLIS_MAX,
        );
        await hold(context, 1_000, 4_000);
        await cluster.kill(id);
        const by = await context.replaceNode(context, id);
        if (by !== undefined) claims.repaired(id);
        return { outcome, by };
      });
    });
  },
};

export const IDENTITY_NEMESES: readonly Nemesis[] = [editedFile, madeAnew];
