/**
 * This node's part in who belongs to the cluster, and in which node holds what: wires the rooms of meta/ together, and
 * hands them what happens. It decides nothing itself.
 */
import { membersOf } from '../../raft/membership.ts';
import type { MultiRaft } from '../../raft/driver/multi-raft.ts';
import type { NodeId } from '../../raft/types.ts';
import type { ChangeDone } from '../api/cluster-change.ts';
import { groupOfPartition } from '../partition/placement.ts';
import type { Hello, Refusal, Sender } from '../wire/hello.ts';
import type { PeerFrameType } from '../wire/frame.ts';
import { encodeGroupsOfVersion, type GroupsOfVersion } from '../wire/groups-of-version.ts';
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
  /** Where correlation ids start. */
  readonly firstId: number;
  /** The nodes of the cluster are others now, or are known for the first time, or other ones are admitted. */
  readonly nodesChanged?: ((state: MetaState, metaMembers: readonly NodeId[]) => void) | undefined;
  /** Called once: this node was removed, or is not the one whose id it bears. It takes part no more. */
  readonly excluded?: ((exclusion: Exclusion) => void) | undefined;
  /** Whether somebody still waits for an answer that this node asked others for. */
  readonly isAsking: () => boolean;
  /** A node that was removed waits so long for such answers, at most. */
  readonly farewellTicksMax: number;
}

export class Membership {
  readonly #init: MembershipInit;
  readonly #registrar: Registrar;
  readonly #versions: SpokenVersions;
  readonly #own: OwnMembership;
  readonly #offers: Offers;
  readonly #mover: GroupMover;
  readonly #keeper: ReplicaKeeper;
  readonly #changes: ChangeForwarder;
  /** While positive, a node that was removed waits for answers. */
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

  /** What the disk held of the partitions. */
  get keeper(): Pick<ReplicaKeeper, 'loaded'> {
    return this.#keeper;
  }

  /** Group 0 says something new. From within a turn of the driver. */
  stateChanged(state: MetaState): void {
    this.#judged(() => this.#own.update(state));
    this.#keeper.update(state);
    this.#init.defer(() => this.#look());
    this.admissionChanged();
  }

  #look(): void {
    if (this.verdict === undefined) this.#keeper.look();
  }

  /** Other nodes are welcome than before, and spoken with: group 0 has another state, or other members. */
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
    // Not in the middle of what told it so.
    defer(() => raft.stop());
    if (verdict.state === 'removed') this.#farewellTicks = farewellTicksMax;
    else this.#part(verdict);
  }

  /** From now on nobody is spoken with. */
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

  /** Why this node takes part no more; undefined while it may. */
  get verdict(): Exclusion | undefined {
    return this.#own.verdict;
  }

  status(isReady: boolean): MembershipStatus {
    return this.#own.current(isReady);
  }

  /** Who has refused this node since it was last welcome there. */
  get refusals(): ReadonlyMap<NodeId, Refusal> {
    return this.#own.refusals;
  }

  /** A peer said this, and was not refused. */
  introduced(hello: Hello): void {
    this.#registrar.introduced(hello);
    this.#versions.introduced(hello);
  }

  /** A peer said this, and was refused. */
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

  /** `sender` has seen these groups with the members that the version wants. */
  receiveSettled(sender: Sender, { version, groups }: GroupsOfVersion): void {
    if (this.#isRecorded(sender)) this.#mover.reported(version, groups);
  }

  /** `sender` would hold a replica of these groups. */
  receiveOffers(sender: Sender, { version, groups }: GroupsOfVersion): void {
    if (this.#isRecorded(sender)) this.#offers.offered(sender.node, version, groups);
  }

  receiveChange(from: NodeId, change: ForwardedChange): void {
    this.#changes.receiveChange(from, change);
  }

  receiveChanged(from: NodeId, result: ForwardedResult): void {
    this.#changes.receiveResult(from, result);
  }

  /** What a node says of groups counts once it is known to be the one whose id it bears. */
  #isRecorded(sender: Sender): boolean {
    return this.#init.admission.trustIn(sender) === 'recorded';
  }
}
