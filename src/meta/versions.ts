/**
 * The version of the cluster in the state of group 0, what raises it, and who may be proposed to. It is never lowered, and raised
 * by an operator only (`quorate upgrade finish`), for nodes that speak less could not read what is written from then on.
 */
import type { NodeId } from '../../raft/types.ts';
import type { ChangeFailure, ChangeResult, NodeBehind, UpgradeChange } from '../api/cluster-change.ts';
import { VERSIONS } from '../api/versions.ts';
import type { Hello } from '../wire/hello.ts';
import type { MetaChange, MetaState } from './cluster-state.ts';

/** The same state if there is nothing left to do: a repetition is harmless. */
export function changedVersion(state: MetaState, { version }: UpgradeChange): MetaState | ChangeFailure {
  const { clusterVersion: current } = state;
  if (version < current) return 'lowerVersion';
  return version === current ? state : { ...state, clusterVersion: version };
}

/**
 * The first version that knows a change of this type. It is handed to no node that speaks less, which would close the connection,
 * and comes into no log while such a node is a member: it would stop there.
 */
function versionOfChange(change: MetaChange): number {
  // Who is to raise the cluster to a version must speak it.
  return change.type === 'upgrade' ? change.change.version : VERSIONS.min;
}

/** Says of each what to do. */
function nodesBehind(behind: readonly NodeBehind[], version: number): ChangeResult {
  const each = behind.map(({ node, speaks }) =>
    speaks === undefined ? `node ${node} is not connected` : `node ${node} speaks ${speaks}`,
  );
  const message = `${each.join(', ')}: start it with a quorate that speaks version ${version}, or remove it from the cluster, and ask again`;
  return { ok: false, reason: 'nodesBehind', behind, message };
}

/** Far more than wait to be added; of more, those that came first are forgotten. */
const REFUSED_MAX = 64;

/** What the nodes said in their hellos that are connected to this one. */
export class SpokenVersions {
  readonly #self: NodeId;
  /** By node; no more than there are connections. */
  readonly #said = new Map<NodeId, Pick<Hello, 'incarnation' | 'speaks'>>();

  /** By node, oldest first: the highest that those speak that were refused for it, until they are welcome. */
  readonly #refused = new Map<NodeId, number>();

  constructor(self: NodeId) {
    this.#self = self;
  }

  /** It speaks no version that this node does. */
  refused({ node, speaks }: Hello): void {
    this.#refused.delete(node);
    this.#refused.set(node, speaks.max);
    const [oldest] = this.#refused.keys();
    if (this.#refused.size > REFUSED_MAX && oldest !== undefined) this.#refused.delete(oldest);
  }

  /** The latest is the one that counts. */
  introduced({ node, incarnation, speaks }: Hello): void {
    this.#said.set(node, { incarnation, speaks });
    this.#refused.delete(node);
  }

  gone(node: NodeId): void {
    this.#said.delete(node);
  }

  /** The members, and those that leave, of which this node does not know that they speak `version`. Itself speaks its own. */
  behind({ nodes, leaving }: MetaState, version: number): NodeBehind[] {
    return [...nodes, ...leaving].flatMap(({ id, incarnation }): NodeBehind[] => {
      const said = this.#said.get(id);
      if (id === this.#self) return [];
      // Another database under its id, or one that nobody has recorded yet, says nothing of it.
      if (said === undefined || said.incarnation !== incarnation) return [{ node: id }];
      return said.speaks.max < version ? [{ node: id, speaks: said.speaks.max }] : [];
    });
  }

  /** What is answered instead of handing this to `leader`, which does not know it; undefined: it may be handed on. */
  unknownTo(leader: NodeId, change: MetaChange, state: MetaState): ChangeResult | undefined {
    const version = versionOfChange(change);
    const behind = this.behind(state, version);
    if (!behind.some(({ node, speaks }) => node === leader && speaks !== undefined)) return undefined;
    return nodesBehind(behind, version);
  }

  /** What the leader of group 0 answers instead of proposing this; undefined: it may be proposed. */
  answerTo(change: MetaChange, state: MetaState): ChangeResult | undefined {
    const { clusterVersion: current } = state;
    if (change.type === 'nodes') {
      const { add } = change.change;
      const isNew = add !== undefined && !state.nodes.some(({ id }) => id === add.id);
      const isOlder = isNew && (this.#refused.get(add.id) ?? current) < current;
      return isOlder ? { ok: false, reason: 'olderNode' } : undefined;
    }
    if (change.type !== 'upgrade') return undefined;
    const { version } = change.change;
    // Both stay true for ever: nothing has to come into the log.
    if (version === current) return { ok: true, version };
    if (version < current) return { ok: false, reason: 'lowerVersion' };
    const behind = this.behind(state, version);
    return behind.length === 0 ? undefined : nodesBehind(behind, version);
  }
}
