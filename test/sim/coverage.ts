/**
 * Counts the rare situations that a run reached, seen from outside: writes, new leaders, committed rules. Judges
 * nothing; the totals show whether a check had anything to check.
 */
import type { PeerMessage } from '../../raft/driver/peer-message.ts';
import type { GroupApplication } from '../../raft/driver/multi-raft.ts';
import type { GroupWrite } from '../../raft/driver/store.ts';
import type { GroupId, NodeId, SnapshotMeta } from '../../raft/types.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import { meterKindOf } from './naive-meters.ts';
import type { Settings } from './settings.ts';
import type { Story } from './story.ts';

export interface CoverageInit {
  readonly settings: Settings;
  readonly story: Story;
  readonly now: () => number;
}

/** The contents of a disk for one group. */
interface Held {
  term: number;
  commit: number;
  lastIndex: number;
  lastTerm: number;
}

interface Use {
  readonly userId: string;
  readonly ruleId: string;
  readonly words: string;
  readonly askedDigest: number | undefined;
  isGranted: boolean;
}

/** Nothing was proposed for this long before a node became leader. */
const IDLE_MILLIS = 60_000;
/** More entries that no leader may have committed than one write usually brings. */
const LONG_SUFFIX = 8;
const LATE_MILLIS = 60_000;
const EPOCH_MILLIS = 365 * 86_400_000;

/**
 * Counts how often groups rest, what wakes them, and the beats (the common heartbeat of resting groups) that are not
 * answered, from the messages of nodes.
 */
class RestWatch {
  readonly #seen: (name: string) => void;
  /** Groups that were listed as resting and have had no message since. */
  readonly #resting = new Set<GroupId>();
  /** Pairs of nodes: the last beat from one to the other was not answered yet. */
  readonly #unanswered = new Set<string>();

  constructor(seen: (name: string) => void) {
    this.#seen = seen;
  }

  sent(from: NodeId, to: NodeId, message: PeerMessage): void {
    switch (message.kind) {
      case 'beat':
        this.#beat(`${from}>${to}`);
        for (const { group } of message.groups ?? []) this.#rests(group);
        return;
      case 'beatAnswer':
        this.#unanswered.delete(`${to}>${from}`);
        if (message.awake.length > 0) this.#seen('beat answered: awake');
        return;
      case 'message':
        // The only message in a group that does not wake it.
        if (message.message.type !== 'heartbeatResponse') this.#woken(message.group, message.message.type);
        return;
      case 'chunk':
      case 'chunkAck':
        this.#woken(message.group, message.kind);
    }
  }

  #beat(path: string): void {
    this.#seen('beat');
    if (this.#unanswered.has(path)) this.#seen('beat after one without an answer');
    this.#unanswered.add(path);
  }

  #rests(group: GroupId): void {
    if (this.#resting.has(group)) return;
    this.#resting.add(group);
    this.#seen('rest');
  }

  #woken(group: GroupId, cause: string): void {
    if (this.#resting.delete(group)) this.#seen(`rest ended by ${cause}`);
  }
}

export class Coverage {
  readonly rests = new RestWatch((name) => this.#seen(name));
  readonly #init: CoverageInit;
  readonly #disks = new Map<string, Held>();
  readonly #snapshots = new Map<string, SnapshotMeta>();
  readonly #proposedAt = new Map<GroupId, number>();
  readonly #leaderOf = new Map<GroupId, NodeId>();
  readonly #uses = new Map<string, Use[]>();
  #table: RuleTable | undefined;

  constructor(init: CoverageInit) {
    this.#init = init;
    const { config, tables, nodes, spares, timing } = init.settings;
    const { partitions, replicas } = config;
    this.#seen(`partitions ${partitions <= 4 ? partitions : partitions <= 16 ? '5-16' : '17-64'}`);
    this.#seen(`replicas ${replicas}`);
    this.#seen(`machines ${nodes + spares}`);
    this.#seen(`deadline ${timing.requestDeadlineMillis}`);
    const horizons = new Set(tables.map((table) => table.requestIdHorizonMillis));
    for (const horizon of horizons) {
      const seconds = 2 ** Math.floor(Math.log2(horizon / 1_000));
      this.#seen(`horizon ${seconds}-${2 * seconds} s`);
    }
  }

  #seen(name: string): void {
    this.#init.story.seen(name);
  }

  asked(request: AllowRequest): void {
    const { requestId, userId, ruleId, cost = 1, timestampMillis, askedDigest, further = [] } = request;
    this.#seen(`cost ${cost <= 2 ? cost : cost < 10 ? '3-9' : '10+'}`);
    if (timestampMillis !== undefined) {
      const lateMillis = this.#init.now() - timestampMillis;
      if (Math.abs(lateMillis) >= EPOCH_MILLIS) this.#seen('timeOfAnotherEpoch');
      else if (lateMillis >= LATE_MILLIS) this.#seen('timeMinutesLate');
    }
    if (askedDigest !== undefined) this.#seen(`joint ${further.length < 2 ? further.length + 1 : '3+'}`);
    if (requestId === undefined) return;
    const uses = this.#uses.get(requestId) ?? [];
    this.#uses.set(requestId, uses);
    const words = JSON.stringify(request);
    if (uses.some((use) => use.words === words && use.isGranted)) this.#seen('idAgainAfterGrant');
    if (uses.some((use) => use.userId !== userId)) this.#seen('idOfAnotherUser');
    if (uses.some((use) => use.userId === userId && use.ruleId !== (ruleId ?? 'default')))
      this.#seen('idOfAnotherRule');
    const isRenamed = (use: Use): boolean =>
      use.userId === userId && use.askedDigest === askedDigest && use.words !== words && use.isGranted;
    if (askedDigest !== undefined && uses.some(isRenamed)) this.#seen('joint under other limits');
    if (!uses.some((use) => use.words === words))
      uses.push({ userId, ruleId: ruleId ?? 'default', words, askedDigest, isGranted: false });
  }

  decided(request: AllowRequest, { allowed, limit, limits, isBlocked }: Decision): void {
    if (isBlocked === true) this.#seen('customer blocked');
    if (limits !== undefined) this.#seen(`joint ${allowed ? 'granted' : 'denied'}`);
    if (!allowed) return;
    if (request.settle === true)
      this.#seen((request.cost ?? 1) > limit ? 'settled over the limit' : 'settled');
    if ((request.cost ?? 1) === limit && limit > 2) this.#seen('wholeLimitAtOnce');
    const words = JSON.stringify(request);
    const use = this.#uses.get(request.requestId ?? '')?.find((known) => known.words === words);
    if (use?.isGranted === true && limits !== undefined) this.#seen('joint repeated');
    if (use !== undefined) use.isGranted = true;
  }

  /** A leader proposed a sweep of idle keys, or a step of UTC. */
  proposedItself(what: 'sweep' | 'utc'): void {
    this.#seen(what);
  }

  rules(table: RuleTable): void {
    if (table.version <= (this.#table?.version ?? 0)) return;
    for (const rule of table.rules) {
      const { id, windowMillis } = rule;
      const before = this.#table?.rules.find((one) => one.id === id);
      this.#seen(`meter ${meterKindOf(rule)}`);
      if (before !== undefined && meterKindOf(before) !== meterKindOf(rule)) this.#seen('meterChanged');
      if (before !== undefined && windowMillis > before.windowMillis) this.#seen('windowGrew');
    }
    this.#table = table;
  }

  /** The newest in any log. */
  get newestRules(): RuleTable | undefined {
    return this.#table;
  }

  observe(node: NodeId, group: GroupId, app: GroupApplication): void {
    const { now } = this.#init;
    const proposed = app.proposed.bind(app);
    app.proposed = (entry) => {
      if (entry !== undefined) this.#proposedAt.set(group, now());
      proposed(entry);
    };
    const statusChanged = app.statusChanged.bind(app);
    app.statusChanged = (status) => {
      if (status.isLeader && this.#leaderOf.get(group) !== node) {
        const since = this.#proposedAt.get(group);
        if (since !== undefined && now() - since >= IDLE_MILLIS) this.#seen('idleThenFailover');
        this.#leaderOf.set(group, node);
      }
      statusChanged(status);
    };
  }

  written(node: NodeId, writes: readonly GroupWrite[]): void {
    for (const { group, entries, install, snapshot, hardState } of writes) {
      const key = `${node}/${group}`;
      const meta = install ?? snapshot;
      if (meta !== undefined) this.#snapshots.set(key, meta);
      const held = this.#disks.get(key) ?? { term: 0, commit: 0, lastIndex: 0, lastTerm: 0 };
      this.#disks.set(key, held);
      if (install !== undefined) this.#installed(held, install, hardState?.term ?? held.term);
      const last = entries.at(-1);
      if (last !== undefined) [held.lastIndex, held.lastTerm] = [last.index, last.term];
      held.term = hardState?.term ?? held.term;
      held.commit = hardState?.commit ?? held.commit;
    }
  }

  /** The last one that is on the disk of `node`. */
  snapshotOf(node: NodeId, group: GroupId): SnapshotMeta | undefined {
    return this.#snapshots.get(`${node}/${group}`);
  }

  #installed(held: Held, { index, term, outgoing }: SnapshotMeta, senderTerm: number): void {
    this.#seen('install');
    if ((outgoing?.length ?? 0) > 0) this.#seen('installOfJointConfig');
    if (term < senderTerm) this.#seen('installOfOlderTerm');
    const isDeposed = held.lastTerm < term;
    if (isDeposed && held.lastIndex - held.commit >= LONG_SUFFIX) this.#seen('installOverLongSuffix');
    [held.lastIndex, held.lastTerm, held.commit] = [index, term, index];
  }
}
