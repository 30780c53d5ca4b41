/** All checkers of a simulated world, connected to each other and to the nodes they watch. */
import type { GroupApplication } from '../../raft/driver/multi-raft.ts';
import type { GroupWrite } from '../../raft/driver/store.ts';
import type { GroupId, NodeId } from '../../raft/types.ts';
import { decodeCommand } from '../../src/limiter/log/command.ts';
import { META_GROUP, type ClusterPlacement } from '../../src/meta/cluster-placement.ts';
import { AskChecker } from './ask-checker.ts';
import { ClockChecker } from './clock-checker.ts';
import { Coverage } from './coverage.ts';
import { DescribedChecker } from './described-checker.ts';
import type { Committed } from './group-history.ts';
import { LimitChecker } from './limit-checker.ts';
import { MembersChecker } from './members-checker.ts';
import type { PeerFrameType } from '../../src/wire/frame.ts';
import type { SimNetwork } from './network.ts';
import { LeadershipChecker } from './leadership-checker.ts';
import { RaftChecker } from './raft-checker.ts';
import { RejectionChecker } from './rejection-checker.ts';
import { RoomChecker } from './room-checker.ts';
import type { Settings } from './settings.ts';
import type { SimNode } from './sim-node.ts';
import type { Story } from './story.ts';
import { TimeChecker } from './time-checker.ts';
import { UtcChecker } from './utc-checker.ts';

export interface CheckersInit {
  readonly settings: Settings;
  readonly story: Story;
  readonly network: SimNetwork;
  /** The initial placement of the partitions. */
  readonly founded: ClusterPlacement;
  readonly nodes: () => readonly SimNode[];
  readonly node: (id: NodeId) => SimNode;
  readonly partitionOf: (userId: string) => number;
  readonly now: () => number;
  readonly after: (delayMillis: number, run: () => void) => void;
  /** A node became leader. */
  readonly led: (node: SimNode) => void;
  /** A wrong clock was found: its node hands over what it leads. */
  readonly clockFound: () => void;
  readonly metaCommitted: (committed: Committed) => void;
}

export class Checkers {
  readonly raft: RaftChecker;
  readonly limits: LimitChecker;
  readonly rejections = new RejectionChecker();
  readonly clocks: ClockChecker;
  readonly times: TimeChecker;
  readonly utc: UtcChecker;
  readonly leadership: LeadershipChecker;
  readonly rooms: RoomChecker;
  readonly members: MembersChecker;
  readonly asks: AskChecker;
  readonly coverage: Coverage;
  /** Only in worlds whose rules come as documents. */
  readonly described: DescribedChecker | undefined;
  readonly #init: CheckersInit;

  constructor(init: CheckersInit) {
    this.#init = init;
    const { settings, story, network, nodes, now, after } = init;
    this.coverage = new Coverage({ settings, story, now });
    const { documents, tables } = settings;
    this.times = new TimeChecker({ settings, nodes, now, after });
    this.utc = new UtcChecker({ settings, nodes, now, after });
    this.limits = new LimitChecker({
      tables: settings.tables,
      now,
      lagMax: (group, since) => this.times.lagMax(group, since),
      expectOutcome: (group, index, outcome) => this.raft.expectOutcome(group, index, outcome),
      logged: (asked, stampedMillis, where) => this.rejections.logged(asked, { stampedMillis, where }),
      charged: (asked, charge) => {
        this.rejections.charged(asked, charge);
        this.described?.charged(asked, charge.version);
      },
      tookBack: (asked) => this.described?.tookBack(asked),
    });
    if (documents !== undefined)
      this.described = new DescribedChecker({
        documents: documents.list,
        tables,
        partitionOf: init.partitionOf,
        customers: this.limits.customers,
        now,
      });
    this.raft = this.#raftChecker();
    this.rooms = new RoomChecker({
      isKnownAt: (group, index, asked) => this.limits.isKnownAt(group, index, asked),
      nodes,
      now,
      after,
    });
    this.leadership = new LeadershipChecker({
      entryAt: (group, index) => this.raft.entryAt(group, index),
      tableAt: (group, index) => this.limits.tableAt(group, index),
      recordAt: (group, index, userId) => this.limits.recordAt(group, index, userId),
      proposed: (proposal) => this.rooms.proposed(proposal),
    });
    this.members = new MembersChecker({
      settings,
      nodes,
      network,
      now,
      after,
      configsOf: (group) => this.raft.configsOf(group),
      diskOf: (group, node) => this.raft.diskOf(group, node),
      leaderOf: (group, term) => this.raft.leaderOf(group, term),
    });
    const { timing } = settings;
    this.asks = new AskChecker({
      now,
      nodes: settings.nodes + settings.spares,
      deadlineMillis: timing.requestDeadlineMillis,
      pauseMillis: timing.electionMillis,
      lateMillis: 3 * timing.tickMillis,
      partitionOf: init.partitionOf,
    });
    this.clocks = new ClockChecker({ settings, story, nodes, network, now, after, found: init.clockFound });
  }

  #raftChecker(): RaftChecker {
    const { settings, story, founded, now, node: nodeOf, led, metaCommitted } = this.#init;
    return new RaftChecker({
      now,
      story,
      driftPpm: settings.maxDriftPpm,
      mayBeLate: settings.network.late > 0 || settings.network.duplicate > 0,
      gainedBetween: (node, from, to, rate) => nodeOf(node).clock.gainedBetween(from, to, rate),
      foundersOf: (group) => founded.membersOf(group).voters,
      led: (node, group) => {
        this.times.led(nodeOf(node), group);
        led(nodeOf(node));
      },
      sent: (node, to, message) => this.coverage.rests.sent(node, to, message),
      appended: (node, group, entries) => this.members.appended(node, group, entries),
      installed: (node, group) => this.times.installed(node, group),
      committed: (group, committed) => {
        this.times.committed(group, committed);
        if (group === META_GROUP) metaCommitted(committed);
        else this.#limitsCommitted(group, committed);
      },
    });
  }

  #limitsCommitted(group: GroupId, committed: Committed): void {
    this.limits.committed(group, committed);
    this.utc.committed(group, committed);
    const { kind, data } = committed.entry;
    if (kind !== 'command') return;
    const command = decodeCommand(data);
    if (command.type === 'sweep' || command.type === 'utc') this.coverage.proposedItself(command.type);
    if (command.type !== 'rules') return;
    this.coverage.rules(command.table);
    this.described?.rules(command.table);
  }

  /** All faults have ended, and no more will come. */
  healed(): void {
    this.times.healed();
    this.utc.healed();
  }

  /** A write of `node` is durable. */
  durable(node: NodeId, writes: readonly GroupWrite[]): void {
    this.coverage.written(node, writes);
    this.raft.written(node, writes);
    this.members.written(node, writes);
  }

  /** A process holds a group from now on. */
  groupAdded(node: NodeId, group: GroupId, app: GroupApplication, applied: number): void {
    this.coverage.observe(node, group, app);
    this.raft.observe(node, group, app, applied);
    this.leadership.observe(node, group, app, () => this.raft.appliedIndex(group, node));
    this.asks.observe(node, app);
  }

  sending(node: NodeId, to: NodeId, type: PeerFrameType, payload: Uint8Array): void {
    if (type === 'peerMessages') this.raft.sending(node, to, payload);
    if (type === 'requests' && this.#init.network.isConnected(node, to)) this.asks.sent(node, to, payload);
  }

  /** The process of `node` has ended. */
  ended(node: NodeId): void {
    this.raft.ended(node);
    this.clocks.ended(node);
  }
}
