/**
 * This node's part in the membership of the cluster and the placement of groups: connects the files of meta/ and passes
 * events to them. It decides nothing itself.
 */
import { membersOf } from '../../raft/membership.ts';
import type { MultiRaft } from '../../raft/driver/multi-raft.ts';
import type { NodeId } from '../../raft/types.ts';
import type { ChangeDone } from '../api/cluster-change.ts';
import { groupOfPartition } from '../partition/placement.ts';
import type { Hello, Refusal, Sender } from '../wire/hello.ts';
import type { PeerFrameType } from '../wire/frame.ts';
import { encodeGroupsOfVersion, type GroupsOfVersion } from '../wire/small-frames.ts';
import type { Admission } from './admission.ts';
import { ChangeForwarder } from './change-forwarder.ts';
import type { ForwardedChange, ForwardedResult } from './change-frames.ts';
import { type ClusterPlacement, META_GROUP } from './cluster-placement.ts';
import { GroupMover } from './group-mover.ts';
import type { MetaGroup } from './meta-group.ts';
import type { MetaChange, MetaState } from './cluster-state.ts';
import { Offers } from './offers.ts';
import { Registrar } from './registrar.ts';
import { type LocalReplicas, ReplicaKeeper } from './replica-keeper.ts';
import { type Exclusion, type MembershipStatus, OwnMembership } from './own-membership.ts';
import { SpokenVersions } from './versions.ts';

/** What the membership of a node is created with. */
export interface MembershipInit {
  readonly nodeId: NodeId;
  readonly raft: MultiRaft;
  readonly meta: MetaGroup;
  readonly placement: ClusterPlacement;
  readonly admission: Admission;
  readonly replicas: LocalReplicas & { partitions(): Iterable<number> };
  readonly isConnected: (peer: NodeId) => boolean;
  /** Sends one frame to a peer; false if it was dropped. */
  readonly send: (to: NodeId, type: PeerFrameType, payload: Uint8Array) => boolean;
  readonly defer: (fn: () => void) => void;
  /** The first correlation id. */
  readonly firstId: number;
  /** The nodes of the cluster or the admitted nodes changed, or are known for the first time. */
  readonly nodesChanged?: ((state: MetaState, metaMembers: readonly NodeId[]) => void) | undefined;
  /** Called once, when this node was removed or does not own its id. It no longer takes part then. */
  readonly excluded?: ((exclusion: Exclusion) => void) | undefined;
  /** Whether clients of this node still wait for answers from other nodes. */
  readonly isAsking: () => boolean;
  /** A node that was removed waits for such answers for at most this many ticks. */
  readonly farewellTicksMax: number;
}

/** The membership of one node. */
export class Membership {
  readonly #init: MembershipInit;
  readonly #registrar: Registrar;
  readonly #versions: SpokenVersions;
  readonly #own: OwnMembership;
  readonly #offers: Offers;
  readonly #mover: GroupMover;
  readonly #keeper: ReplicaKeeper;
  readonly #changes: ChangeForwarder;
  /** While this is positive, a node that was removed waits for answers. */
  #farewellTicks = 0;

  constructor(init: MembershipInit) {
    this.#init = init;
    const { raft, meta, admission, replicas, send } = init;
    this.#registrar = new Registrar(meta, admission.introduction);
    this.#versions = new SpokenVersions(init.nodeId);
    this.#own = new OwnMembership(admission);
    this.#offers = new Offers((group) => raft.leads(group));
    this.#mover = new GroupMover({
      ...init,
      offers: this.#offers,
      groups: () => [META_GROUP, ...[...replicas.partitions()].map(groupOfPartition)],
      report: (to, version, groups) => send(to, 'settled', encodeGroupsOfVersion({ version, groups })),
    });
    this.#keeper = new ReplicaKeeper({
      ...init,
      offer: (to, version, partitions) =>
        send(to, 'offers', encodeGroupsOfVersion({ version, groups: partitions.map(groupOfPartition) })),
    });
    this.#changes = new ChangeForwarder({ ...init, versions: this.#versions });
  }

  /** Takes the partitions that were on disk at start. */
  get keeper(): Pick<ReplicaKeeper, 'loaded'> {
    return this.#keeper;
  }

  /** The state of group 0 changed. Called within a turn of the driver. */
  stateChanged(state: MetaState): void {
    this.#judged(() => this.#own.update(state));
    this.#keeper.update(state);
    this.#init.defer(() => this.#check());
    this.admissionChanged();
  }

  #check(): void {
    if (this.verdict === undefined) this.#keeper.check();
  }

  /** The admitted nodes may have changed, because the state or the members of group 0 did. */
  admissionChanged(): void {
    const { raft, meta, admission, nodesChanged } = this.#init;
    const config = raft.configOf(META_GROUP);
    if (meta.state === undefined) return;
    const members = config === undefined ? [] : membersOf(config);
    admission.update(meta.state, members);
    nodesChanged?.(meta.state, members);
  }

  #judged(judge: () => void): void {
    const before = this.verdict;
    judge();
    const { verdict } = this;
    if (before !== undefined || verdict === undefined) return;
    const { defer, raft, farewellTicksMax } = this.#init;
    // Deferred, because the driver may be in the middle of the call that led here.
    defer(() => raft.stop());
    if (verdict.state === 'removed') this.#farewellTicks = farewellTicksMax;
    else this.#part(verdict);
  }

  /** Ends all contact with other nodes. */
  #part(verdict: Exclusion): void {
    const { admission, excluded } = this.#init;
    admission.withdraw(verdict.reason);
    excluded?.(verdict);
  }

  #tickFarewell(verdict: Exclusion): void {
    if (this.#farewellTicks === 0) return;
    this.#farewellTicks = this.#init.isAsking() ? this.#farewellTicks - 1 : 0;
    if (this.#farewellTicks === 0) this.#part(verdict);
  }

  /** Why this node no longer takes part; undefined while it does. */
  get verdict(): Exclusion | undefined {
    return this.#own.verdict;
  }

  /** The status for operators, see `OwnMembership.current`. */
  status(isReady: boolean): MembershipStatus {
    return this.#own.current(isReady);
  }

  /** The nodes that refused this node the last time they met, with the reason. */
  get refusals(): ReadonlyMap<NodeId, Refusal> {
    return this.#own.refusals;
  }

  /** A peer sent this hello and was accepted. */
  introduced(hello: Hello): void {
    this.#registrar.introduced(hello);
    this.#versions.introduced(hello);
  }

  /** A peer sent this hello and was refused. */
  unwelcome(hello: Hello, { code }: Refusal): void {
    if (code === 'otherVersion') this.#versions.refused(hello);
  }

  welcomedBy(peer: NodeId): void {
    this.#own.welcomedBy(peer);
  }

  refusedBy(peer: NodeId, refusal: Refusal): void {
    this.#judged(() => this.#own.refusedBy(peer, refusal));
  }

  peerLost(peer: NodeId): void {
    this.#registrar.gone(peer);
    this.#versions.gone(peer);
    this.#offers.gone(peer);
  }

  peerDisconnected(peer: NodeId): void {
    this.#changes.peerDisconnected(peer);
  }

  /** Makes a change of the cluster, see `ChangeForwarder`. */
  change(change: MetaChange, done: ChangeDone): void {
    if (this.verdict === undefined) this.#changes.change(change, done);
    else done({ ok: false, reason: 'notMember' });
  }

  tick(): void {
    this.#changes.tick();
    if (this.verdict !== undefined) {
      this.#tickFarewell(this.verdict);
      return;
    }
    this.#mover.tick();
    this.#registrar.tick();
    this.#keeper.tick();
  }

  /** `sender` reports that these groups are settled for the version. */
  receiveSettled(sender: Sender, { version, groups }: GroupsOfVersion): void {
    if (this.#isRecorded(sender)) this.#mover.reported(version, groups);
  }

  /** `sender` offers to hold replicas of these groups. */
  receiveOffers(sender: Sender, { version, groups }: GroupsOfVersion): void {
    if (this.#isRecorded(sender)) this.#offers.offered(sender.node, version, groups);
  }

  receiveChange(from: NodeId, change: ForwardedChange): void {
    this.#changes.receiveChange(from, change);
  }

  receiveChanged(from: NodeId, result: ForwardedResult): void {
    this.#changes.receiveResult(from, result);
  }

  /** Messages about groups count only from a node whose incarnation is recorded. */
  #isRecorded(sender: Sender): boolean {
    return this.#init.admission.trustIn(sender) === 'recorded';
  }
}
