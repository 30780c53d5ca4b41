/**
 * Who may take part: judges the hello of every connection, and what may be taken from whom. Pure: it knows this node,
 * the facts of its cluster and what group 0 says here, and neither dials nor closes anything.
 *
 * Raft counts on a node that keeps what it promised. A node id is borne by a database that does, told from any other
 * by its random incarnation. Those of the founders are facts of the cluster; that of a node which joins is recorded in
 * group 0 by the first one that introduces itself, for ever. Whoever has another is refused by all who know the record.
 *
 * Not everybody knows it yet: a node that was away may lag behind in group 0, and meet a disk that was lost and made
 * anew under an id that is recorded. So nothing that a sender *promises* is taken before its incarnation is recorded
 * here, and that suffices:
 *
 * - What counts are votes and acknowledgements of the members of a configuration that is in effect here. In group 0's
 *   own log the record precedes every configuration with that node, for its leader proposes none before it has applied
 *   the record. Whoever goes by such a configuration knows the record.
 * - A group of a partition may run ahead of group 0 here, so its configuration may hold a node that is not recorded
 *   here yet. Its messages are dropped until it is. Group 0 does not wait for any partition, so it is before long.
 * - Group 0 must be heard from anybody, or a node that knows nobody any more could never catch up: of an unrecorded
 *   sender its requests are taken, which ask and tell, and not its answers, which promise. An unrecorded sender cannot
 *   lead anybody astray by them: to campaign it needs a configuration, which only a leader that goes by a recorded
 *   incarnation could have sent it.
 */
import type { HostPort } from '../api/node-address.ts';
import type { PeerMessage } from '../../raft/driver/peer-message.ts';
import type { NodeId } from '../../raft/types.ts';
import type { Founder } from '../../storage/identity.ts';
import { agreedVersion, noCommonVersionText, VERSIONS, type VersionRange } from '../api/versions.ts';
import type { Hello, Refusal, Sender } from '../wire/hello.ts';
import { META_GROUP } from './cluster-placement.ts';
import type { Introduction, MetaState } from './cluster-state.ts';

export interface AdmissionInit {
  readonly nodeId: NodeId;
  readonly incarnation: string;
  /** Digest of the facts. */
  readonly facts: string;
  readonly founders: readonly Founder[];
  /** Where this node can be reached; what nobody else could use is left out. */
  readonly addresses?: { readonly peer?: HostPort; readonly http?: HostPort };
}

/** `unrecorded`: nothing is known against it. `refused`: it is another than the recorded one, or was removed. */
export type Trust = 'recorded' | 'unrecorded' | 'refused';

export class Admission {
  readonly #init: AdmissionInit;
  /** By node, for good: also of those that left. */
  readonly #recorded = new Map<NodeId, string>();
  #removed: ReadonlySet<NodeId> = new Set();
  #versions = VERSIONS;
  /** This node takes part no more, and this is why. */
  #withdrawn: string | undefined;

  constructor(init: AdmissionInit) {
    this.#init = init;
    for (const { id, incarnation } of init.founders) this.#recorded.set(id, incarnation);
  }

  /**
   * What group 0 says here, now.
   *
   * @param members of group 0: one that was removed is spoken with until it had the chance to learn so
   */
  update(state: MetaState, members: readonly NodeId[]): void {
    const { nodes, leaving, retired, clusterVersion } = state;
    const { min, max } = VERSIONS;
    this.#versions = { min: Math.max(min, clusterVersion), max };
    for (const { id, incarnation } of [...nodes, ...leaving]) {
      if (incarnation !== undefined) this.#recorded.set(id, incarnation);
    }
    const needed = new Set([...leaving.map(({ id }) => id), ...members]);
    this.#removed = new Set(retired.filter((id) => !needed.has(id)));
  }

  /** Nobody is welcome any more: this node was removed, or is not the one whose id it bears. */
  withdraw(reason: string): void {
    this.#withdrawn = reason;
  }

  get self(): Sender {
    return { node: this.#init.nodeId, incarnation: this.#init.incarnation };
  }

  /** What this node speaks: none below the version of the cluster, as far as it knows that. */
  get versions(): VersionRange {
    return this.#versions;
  }

  /** What this node says of itself. */
  get introduction(): Introduction {
    const { nodeId: id, incarnation, addresses } = this.#init;
    return { id, incarnation, ...addresses };
  }

  /** Removed from the cluster, and needed no more. */
  get removed(): ReadonlySet<NodeId> {
    return this.#removed;
  }

  helloTo(target: NodeId): Hello {
    const { facts, addresses = {} } = this.#init;
    const targetIncarnation = this.#recorded.get(target);
    return {
      ...this.self,
      target,
      facts,
      speaks: this.#versions,
      ...(targetIncarnation !== undefined && { targetIncarnation }),
      ...addresses,
    };
  }

  trustIn({ node, incarnation }: Sender): Trust {
    if (this.#removed.has(node)) return 'refused';
    const recorded = this.#recorded.get(node);
    if (recorded === undefined) return 'unrecorded';
    return recorded === incarnation ? 'recorded' : 'refused';
  }

  /** Why the one that says this hello is refused; undefined if it is welcome. To be asked again after each update. */
  refusalOf(hello: Hello): Refusal | undefined {
    const { nodeId, incarnation, facts } = this.#init;
    const { node } = hello;
    if (hello.facts !== facts) {
      const text = `node ${nodeId} goes by other facts of the cluster than node ${node}: compare clusterId, founders, partitions and replicas in their cluster.json`;
      return { code: 'otherFacts', text };
    }
    // First what is true of the sender, whoever it looks for: those may be gone, and others at their addresses.
    if (this.#removed.has(node)) {
      const text = `node ${node} was removed from the cluster: its id does not come back, stop it`;
      return { code: 'removed', text };
    }
    if (this.trustIn(hello) === 'refused') {
      const text = `another database is recorded under node id ${node}: two machines have this id, or its disk was lost; take a new id`;
      return { code: 'otherIncarnation', text };
    }
    if (agreedVersion(this.#versions, hello.speaks) === undefined) {
      const text = noCommonVersionText(hello, { node: nodeId, speaks: this.#versions });
      return { code: 'otherVersion', text };
    }
    if (hello.target !== nodeId || node === nodeId) {
      const text = `node ${node} looked for node ${hello.target} and reached node ${nodeId}: check the addresses in cluster.json`;
      return { code: 'wrongTarget', text };
    }
    if ((hello.targetIncarnation ?? incarnation) !== incarnation) {
      const text = `node ${nodeId} has another database than the one recorded under its id: a machine whose disk was lost takes a new id`;
      return { code: 'wrongTarget', text };
    }
    if (this.#withdrawn !== undefined) return { code: 'wrongTarget', text: this.#withdrawn };
    return undefined;
  }

  /** May this message of `sender` be taken? See above. */
  mayTake(sender: Sender, message: PeerMessage): boolean {
    switch (this.trustIn(sender)) {
      case 'recorded':
        return true;
      case 'refused':
        return false;
      case 'unrecorded':
        return 'group' in message && message.group === META_GROUP && !isPromise(message);
    }
  }
}

function isPromise(message: PeerMessage): boolean {
  switch (message.kind) {
    case 'chunk':
      return false;
    case 'chunkAck':
    case 'beat':
    case 'beatAnswer':
      return true;
    case 'message':
      break;
  }
  switch (message.message.type) {
    case 'preVote':
    case 'vote':
    case 'append':
    case 'heartbeat':
    case 'snapshot':
    case 'timeoutNow':
      return false;
    case 'preVoteResponse':
    case 'voteResponse':
    case 'appendResponse':
    case 'heartbeatResponse':
      return true;
  }
}
