/** Adds, removes and replaces nodes while clients ask and other faults are active. */
import type { NodeId } from '../../../raft/types.ts';
import { eventually } from '../../cluster/harness.ts';
import type { ClusterReport } from '../../../src/api/cluster-report.ts';
import { chance, pick, shuffled } from './draw.ts';
import { hold, type Nemesis, type NemesisContext, perform, revive, withVictims } from './nemesis.ts';

export interface Change {
  readonly add?: NodeId;
  readonly remove?: NodeId;
}

/** Thrown if the cluster refuses a change. */
class RefusedError extends Error {
  readonly code = 'CHANGE_REFUSED';
}

const ACCEPT_MILLIS_MAX = 60_000;
const MOVE_MILLIS_MAX = 180_000;
const ANSWER_MILLIS_MAX = 5_000;
/** The cluster does not shrink below its first size, and grows by at most this much. */
const GROWTH_MAX = 2;

/** Asks one node and follows its redirects. Undefined: ask again; a repeated change has no further effect. */
async function ask({ cluster }: NemesisContext, id: NodeId, change: Change): Promise<number | undefined> {
  const { add, remove } = change;
  // A node reports its Redis address itself.
  const { resp: _, ...address } = cluster.node(add ?? id).machine.address;
  const body = JSON.stringify({
    ...(add !== undefined && { add: address }),
    ...(remove !== undefined && { remove }),
  });
  let response: Response;
  try {
    response = await fetch(`${cluster.node(id).httpUrl}/v1/cluster/nodes`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      signal: AbortSignal.timeout(ANSWER_MILLIS_MAX),
    });
  } catch {
    return undefined;
  }
  const text = await response.text().catch(() => '');
  if (response.status === 200) return (JSON.parse(text) as { version: number }).version;
  if (response.status === 503) return undefined;
  throw new RefusedError(`${response.status} ${text}`);
}

async function accepted(context: NemesisContext, change: Change): Promise<number> {
  const { cluster, random } = context;
  return eventually(
    'the change of the nodes is accepted',
    async () => {
      const [id] = shuffled(random, cluster.members).filter((member) => cluster.node(member).isRunning);
      return id === undefined ? undefined : ask(context, id, change);
    },
    ACCEPT_MILLIS_MAX,
  );
}

/** Waits until all partitions are on the nodes that this version, or a later one, assigns. */
async function settled({ cluster, random }: NemesisContext, version: number): Promise<void> {
  const isSettled = (report: ClusterReport | undefined): boolean => (report?.settledVersion ?? 0) >= version;
  await eventually(
    `the partitions have moved for version ${version}`,
    async () => {
      const [id] = shuffled(random, cluster.members).filter((member) => cluster.node(member).isRunning);
      return id !== undefined && isSettled(await cluster.node(id).report()) ? true : undefined;
    },
    MOVE_MILLIS_MAX,
  );
}

/**
 * Carries a change out to its end: starts the node that joins, and stops the node that leaves once its partitions have
 * moved. The caller has claimed the leaving node. The joining one may be killed like any node once it is a member.
 */
export async function changeNodes(context: NemesisContext, change: Change): Promise<{ version: number }> {
  const { cluster } = context;
  const { add, remove } = change;
  if (add !== undefined) {
    // Its id and database are used up, however this ends.
    const node = cluster.node(add);
    if (!node.isRunning) node.start();
    if (!(await node.isUp())) throw new Error(`the new node ${add} does not start`);
  }
  const version = await accepted(context, change);
  if (add !== undefined) cluster.node(add).role = 'member';
  await settled(context, version);
  if (remove !== undefined) {
    const node = cluster.node(remove);
    node.role = 'retired';
    await node.stop();
    context.claims.repaired(remove);
  }
  return { version };
}

/** Implements `replaceNode` of the context. */
export async function replaceNode(context: NemesisContext, oldId: NodeId): Promise<NodeId | undefined> {
  const { claims, cluster, log } = context;
  const [newId] = claims.take(cluster.spares, 1);
  const note = (detail: unknown): void =>
    log.write({ event: 'note', name: 'replace', nodes: [oldId], detail });
  if (newId === undefined) {
    note('there is no spare node left: the old one stays a member that is down');
    return undefined;
  }
  try {
    note({ by: newId, ...(await changeNodes(context, { add: newId, remove: oldId })) });
    return newId;
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    note(error.message);
    return undefined;
  } finally {
    claims.release([newId]);
  }
}

const founders = ({ cluster }: NemesisContext): number => cluster.config.founders.length;

const addNode: Nemesis = {
  name: 'add-node',
  family: 'membership',
  needs: () => undefined,
  async run(context) {
    const { cluster } = context;
    const mayGrow = cluster.members.length < founders(context) + GROWTH_MAX;
    await withVictims(context, this.name, mayGrow ? cluster.spares : [], 1, async ([add]) =>
      perform(context, { name: this.name, nodes: [add] }, async () => changeNodes(context, { add })),
    );
  },
};

/** Chooses the node to remove, and its state: running, just killed, or paused until the change is over. */
async function withLeaver(
  context: NemesisContext,
  name: string,
  change: (remove: NodeId) => Promise<unknown>,
): Promise<void> {
  const { claims, cluster, random, log } = context;
  const from = chance(random, 2) ? await cluster.byLeadership() : shuffled(random, cluster.members);
  await withVictims(context, name, from, 1, async ([id]) => {
    // Its copies are missing until other nodes have them, as for a damaged node.
    const mayMiss = cluster.node(id).isRunning && claims.mayDamage;
    const state = mayMiss ? pick(random, ['working', 'working', 'killed', 'paused']) : 'as it was';
    await perform(context, { name, nodes: [id], detail: { state } }, async () => {
      if (state === 'killed' || state === 'paused') claims.damage(id);
      if (state === 'killed') await cluster.kill(id);
      if (state === 'paused') cluster.node(id).pause();
      try {
        return await change(id);
      } catch (error) {
        if (!(error instanceof RefusedError)) throw error;
        cluster.node(id).resume();
        if (state === 'killed') await revive(context, [id]);
        if (state === 'killed' || state === 'paused') claims.repaired(id);
        return { refused: error.message };
      } finally {
        cluster.node(id).resume();
      }
    });
    // A removed node that does not know of its removal comes back, and must not be able to do anything.
    if (cluster.members.includes(id) || !chance(random, 2)) return;
    cluster.node(id).start();
    cluster.node(id).expectExit('retired');
    log.write({ event: 'note', name, nodes: [id], detail: 'the removed node is back for a while' });
    await hold(context, 500, 5_000);
    await cluster.kill(id);
  });
}

const removeNode: Nemesis = {
  name: 'remove-node',
  family: 'membership',
  needs: () => undefined,
  async run(context) {
    if (context.cluster.members.length <= founders(context)) {
      context.log.write({
        event: 'skipped',
        name: this.name,
        detail: 'there are only as many nodes as at the start',
      });
      return;
    }
    await withLeaver(context, this.name, async (remove) => changeNodes(context, { remove }));
  },
};

const replace: Nemesis = {
  name: 'replace-node',
  family: 'membership',
  needs: () => undefined,
  async run(context) {
    const { claims, cluster } = context;
    const [add] = claims.take(cluster.spares, 1);
    if (add === undefined) {
      context.log.write({ event: 'skipped', name: this.name, detail: 'there is no spare node left' });
      return;
    }
    try {
      await withLeaver(context, this.name, async (remove) => changeNodes(context, { add, remove }));
    } finally {
      claims.release([add]);
    }
  },
};

export const MEMBERSHIP_NEMESES: readonly Nemesis[] = [addNode, removeNode, replace];
