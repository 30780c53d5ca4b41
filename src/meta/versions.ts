/**
 * The version of the cluster in the state of group 0, and the versions that nodes speak. The version never decreases,
 * and only an operator raises it (`quorate upgrade finish`), because nodes with an older program cannot read what is
 * written from then on.
 */
import type { NodeId } from '../../raft/types.ts';
import type { ChangeFailure, ChangeResult, NodeBehind, UpgradeChange } from '../api/cluster-change.ts';
import { VERSIONS } from '../api/versions.ts';
import type { Hello } from '../wire/hello.ts';
import type { MetaChange, MetaState } from './cluster-state.ts';

/** Raises the version. Returns the same state if nothing changes, so a repetition is harmless. */
export function changedVersion(state: MetaState, { version }: UpgradeChange): MetaState | ChangeFailure {
  const { clusterVersion: current } = state;
  if (version < current) return 'lowerVersion';
  return version === current ? state : { ...state, clusterVersion: version };
}

/**
 * The first version that knows this change. The change is not forwarded to a node that speaks less, which would close
 * the connection, and is not proposed while such a node is a member, which would stop at it.
 */
function versionOfChange(change: MetaChange): number {
  // A node must speak the version that it raises the cluster to.
  return change.type === 'upgrade' ? change.change.version : VERSIONS.min;
}

/** The refusal that names each such node and what to do. */
function nodesBehind(behind: readonly NodeBehind[], version: number): ChangeResult {
  const each = behind.map(({ node, speaks }) =>
    speaks === undefined ? `node ${node} is not connected` : `node ${node} speaks ${speaks}`,
  );
  const message = `${each.join(', ')}: start it with a quorate that speaks version ${version}, or remove it from the cluster, and ask again`;
  return { ok: false, reason: 'nodesBehind', behind, message };
}

/** Far more than nodes that wait to be added. The oldest are dropped. */
const REFUSED_MAX = 64;

/** The versions that connected nodes speak, from their hellos. */
export class SpokenVersions {
  readonly #self: NodeId;
  /** By node; no more than there are connections. */
  readonly #said = new Map<NodeId, Pick<Hello, 'incarnation' | 'speaks'>>();

  /**
   * Nodes that were refused for their version, oldest first, with the highest version they speak. Dropped once they are
   * accepted.
   */
  readonly #refused = new Map<NodeId, number>();

  constructor(self: NodeId) {
    this.#self = self;
  }

  /** A node was refused because it shares no version with this one. */
  refused({ node, speaks }: Hello): void {
    this.#refused.delete(node);
    this.#refused.set(node, speaks.max);
    const [oldest] = this.#refused.keys();
    if (this.#refused.size > REFUSED_MAX && oldest !== undefined) this.#refused.delete(oldest);
  }

  /** A node was accepted. Its latest hello counts. */
  introduced({ node, incarnation, speaks }: Hello): void {
    this.#said.set(node, { incarnation, speaks });
    this.#refused.delete(node);
  }

  gone(node: NodeId): void {
    this.#said.delete(node);
  }

  /**
   * The members and leaving nodes that may not speak `version`: they are not connected, or speak less. This node itself
   * is never among them.
   */
  behind({ nodes, leaving }: MetaState, version: number): NodeBehind[] {
    return [...nodes, ...leaving].flatMap(({ id, incarnation }): NodeBehind[] => {
      const said = this.#said.get(id);
      if (id === this.#self) return [];
      // A database with another incarnation, or one that is not recorded, says nothing about the node.
      if (said === undefined || said.incarnation !== incarnation) return [{ node: id }];
      return said.speaks.max < version ? [{ node: id, speaks: said.speaks.max }] : [];
    });
  }

  /** The refusal of a change that `leader` does not know; undefined if it may be forwarded. */
  unknownTo(leader: NodeId, change: MetaChange, state: MetaState): ChangeResult | undefined {
    const version = versionOfChange(change);
    const behind = this.behind(state, version);
    if (!behind.some(({ node, speaks }) => node === leader && speaks !== undefined)) return undefined;
    return nodesBehind(behind, version);
  }

  /** The answer of the leader of group 0 if it does not propose this change; undefined if it may be proposed. */
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
    // Both answers stay true forever, so they need no log entry.
    if (version === current) return { ok: true, version };
    if (version < current) return { ok: false, reason: 'lowerVersion' };
    const behind = this.behind(state, version);
    return behind.length === 0 ? undefined : nodesBehind(behind, version);
  }
}
