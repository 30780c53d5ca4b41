/**
 * Decides which nodes may take part: it checks the hello of every connection and which messages may be accepted from
 * whom. Pure: it knows this node, the facts of its cluster and the state of group 0 on this node. It neither dials nor
 * closes connections.
 *
 * Raft relies on nodes that keep their promises. A node id therefore belongs to one database, which its random
 * incarnation identifies. The incarnations of the founders are facts of the cluster. Group 0 records the incarnation of
 * a joining node when the node first introduces itself, and never changes it. Every node that knows the record refuses
 * a node with another incarnation.
 *
 * Not every node knows the record at once: a node that was away may be behind in group 0, and meet a node whose disk
 * was lost and whose database was created again under a recorded id. So a node accepts no *promise* from a sender whose
 * incarnation is not recorded on this node. That is enough:
 *
 * - Votes and acknowledgements count only if they come from members of a configuration that is in effect here. In group
 *   0's own log the record precedes every configuration with that node, because the leader proposes none before it has
 *   applied the record. So a node that uses such a configuration knows the record.
 * - The group of a partition may be ahead of group 0 on this node, so its configuration may contain a node that is not
 *   recorded here yet. The messages of that node are dropped until it is. Group 0 does not wait for any partition, so
 *   this does not take long.
 * - Messages of group 0 must be accepted from unknown nodes, or a node that lost contact with all others could never
 *   catch up. From an unrecorded sender it accepts requests, but not answers, which are promises. Its requests cannot
 *   do harm: a sender needs a configuration to campaign, and it can only have that from a leader that uses a recorded
 *   incarnation.
 */
import type { HostPort } from '../api/node-address.ts';
import type { PeerMessage } from '../../raft/driver/peer-message.ts';
import type { NodeId } from '../../raft/types.ts';
import type { Founder } from '../../storage/identity.ts';
import { agreedVersion, noCommonVersionText, VERSIONS, type VersionRange } from '../api/versions.ts';
import type { Hello, Refusal, Sender } from '../wire/hello.ts';
import { META_GROUP } from './cluster-placement.ts';
import type { Introduction, MetaState } from './cluster-state.ts';

/** What this node knows about itself. */
export interface AdmissionInit {
  readonly nodeId: NodeId;
  readonly incarnation: string;
  /** The digest of the cluster facts. */
  readonly facts: string;
  readonly founders: readonly Founder[];
  /** The addresses where other nodes can reach this node. Addresses that they could not use are omitted. */
  readonly addresses?: { readonly peer?: HostPort; readonly http?: HostPort };
}

/**
 * Whether a sender can be trusted. `unrecorded`: its id has no incarnation yet. `refused`: it has another incarnation
 * than the recorded one, or it was removed.
 */
export type Trust = 'recorded' | 'unrecorded' | 'refused';

/** The admission rules of one node. */
export class Admission {
  readonly #init: AdmissionInit;
  /** Recorded incarnations by node, including nodes that have left. */
  readonly #recorded = new Map<NodeId, string>();
  #removed: ReadonlySet<NodeId> = new Set();
  #versions = VERSIONS;
  /** Set once this node no longer takes part: the reason. */
  #withdrawn: string | undefined;

  constructor(init: AdmissionInit) {
    this.#init = init;
    for (const { id, incarnation } of init.founders) this.#recorded.set(id, incarnation);
  }

  /**
   * Takes over the current state of group 0 on this node.
   *
   * @param members the members of group 0. A removed node is spoken with until it could learn of its removal.
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

  /** Refuses every peer from now on: this node was removed, or does not own its id. */
  withdraw(reason: string): void {
    this.#withdrawn = reason;
  }

  get self(): Sender {
    return { node: this.#init.nodeId, incarnation: this.#init.incarnation };
  }

  /** The protocol versions that this node speaks: none below the version of the cluster, if that is known. */
  get versions(): VersionRange {
    return this.#versions;
  }

  /** The introduction of this node. */
  get introduction(): Introduction {
    const { nodeId: id, incarnation, addresses } = this.#init;
    return { id, incarnation, ...addresses };
  }

  /** The nodes that were removed from the cluster and are no longer needed. */
  get removed(): ReadonlySet<NodeId> {
    return this.#removed;
  }

  /** The hello for a connection to `target`. */
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

  /** Whether `node` with this incarnation can be trusted. */
  trustIn({ node, incarnation }: Sender): Trust {
    if (this.#removed.has(node)) return 'refused';
    const recorded = this.#recorded.get(node);
    if (recorded === undefined) return 'unrecorded';
    return recorded === incarnation ? 'recorded' : 'refused';
  }

  /** Why the sender of this hello is refused; undefined if it is welcome. Check again after each update. */
  refusalOf(hello: Hello): Refusal | undefined {
    const { nodeId, incarnation, facts } = this.#init;
    const { node } = hello;
    if (hello.facts !== facts) {
      const text = `node ${nodeId} has other cluster facts than node ${node}: compare clusterId, founders, partitions and replicas in their cluster.json`;
      return { code: 'otherFacts', text };
    }
    // Check the sender before the target: a removed node may dial an address that another node uses now.
    if (this.#removed.has(node)) {
      const text = `node ${node} was removed from the cluster: stop it, and never use its id again`;
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
      const text = `node ${nodeId} does not have the database that is recorded under its id: a machine whose disk was lost needs a new id`;
      return { code: 'wrongTarget', text };
    }
    if (this.#withdrawn !== undefined) return { code: 'wrongTarget', text: this.#withdrawn };
    return undefined;
  }

  /** Whether to accept this message from `sender`, see the top of this file. */
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
