/**
 * Group 0 on one node, which replicates the state of the cluster. The leader takes changes, one log entry each, and
 * answers when they are applied. All decisions follow from the log.
 */
import type { GroupApplication, SnapshotSource, SnapshotTarget } from '../../raft/driver/multi-raft.ts';
import { NO_NODE, type Entry, type GroupConfig, type NodeId } from '../../raft/types.ts';
import type { GroupClock } from '../../raft/driver/group-clock.ts';
import type { ChangeDone, ChangeFailure, ChangeResult } from '../api/cluster-change.ts';
import { VERSIONS } from '../api/versions.ts';
import type { RuleTable } from '../limiter/rules.ts';
import type { Hash32 } from '../partition/hash.ts';
import { tooFewUndrainedText } from './draining.ts';
import { decodeMetaCommand, decodeMetaRecord, encodeMeta, isReadable } from './meta-form.ts';
import { applyMetaCommand } from './meta-state.ts';
import type { Introduction, MetaChange, MetaCommand, MetaRecord, MetaState } from './cluster-state.ts';

/** What group 0 is created with. */
export interface MetaGroupInit {
  readonly clock: GroupClock;
  readonly founders: readonly Introduction[];
  /** The first rules of a new cluster. */
  readonly rules: RuleTable;
  /** Fixed with the cluster. `hash` places nodes and partitions on the hash ring. */
  readonly fixed: { readonly replicas: number; readonly partitions: number; readonly hash: Hash32 };
  readonly requestProposal: () => void;
  readonly stateChanged: (state: MetaState) => void;
  /** The members of group 0 changed. */
  readonly configChanged: () => void;
}

interface Waiting {
  readonly command: MetaCommand;
  readonly done: ChangeDone | undefined;
}

/** Rule tables may have hundreds of kilobytes. A chunk must be smaller than the driver's limit. */
const SNAPSHOT_CHUNK_BYTES = 32 << 10;
/** The maximum number of changes that wait for the log; more are refused. */
const WAITING_MAX = 64;

/** The state machine of group 0. */
export class MetaGroup implements GroupApplication {
  readonly clock: GroupClock;
  readonly #init: MetaGroupInit;
  #record: MetaRecord | undefined;
  #isLeader = false;
  #leader: NodeId = NO_NODE;
  #waiting: Waiting[] = [];
  #proposing: Waiting | undefined;
  /** This node's proposals that are not applied yet, by log index. */
  readonly #inflight = new Map<number, Waiting>();

  constructor(init: MetaGroupInit) {
    this.#init = init;
    this.clock = init.clock;
  }

  /** The state; undefined until the first leader has created it. */
  get state(): MetaState | undefined {
    return this.#record?.state;
  }

  get isLeader(): boolean {
    return this.#isLeader;
  }

  get leader(): NodeId {
    return this.#leader;
  }

  /** Proposes a change. Calls `done` once. Only the leader accepts changes. */
  change(change: MetaChange, done: ChangeDone): void {
    if (!this.#isLeader || this.#record === undefined) {
      done({ ok: false, reason: 'notLeader', leader: this.#isLeader ? NO_NODE : this.#leader });
    } else if (this.#waiting.length >= WAITING_MAX) {
      done({ ok: false, reason: 'overloaded' });
    } else {
      this.#propose({ command: change, done });
    }
  }

  /** Records that all groups have the members of `version`. */
  settled(version: number): void {
    this.#proposeOnce({ type: 'settled', version });
  }

  /** Records the incarnation and the addresses of a node. */
  introduce(node: Introduction): void {
    this.#proposeOnce({ type: 'introduce', node });
  }

  /** Proposes a command that nobody waits for: the caller checks the state later and asks again. */
  #proposeOnce(command: MetaCommand): void {
    if (!this.#isLeader || this.#record === undefined || this.#waiting.length >= WAITING_MAX) return;
    const text = JSON.stringify(command);
    const isKnown = [...this.#waiting, ...this.#inflight.values()].some(
      (other) => JSON.stringify(other.command) === text,
    );
    if (!isKnown) this.#propose({ command, done: undefined });
  }

  #propose(waiting: Waiting): void {
    // An unreadable command would end every node that applies it.
    if (!isReadable(waiting.command)) return waiting.done?.({ ok: false, reason: 'overloaded' });
    this.#waiting.push(waiting);
    this.#init.requestProposal();
  }

  takeProposal(): Uint8Array | undefined {
    const { founders, rules, fixed } = this.#init;
    if (this.#record === undefined && this.#inflight.size === 0) {
      const { replicas, partitions } = fixed;
      const clusterVersion = VERSIONS.max;
      this.#proposing = {
        command: { type: 'create', nodes: founders, replicas, partitions, rules, clusterVersion },
        done: undefined,
      };
    } else {
      this.#proposing = this.#waiting.shift();
    }
    if (this.#waiting.length > 0) this.#init.requestProposal();
    return this.#proposing === undefined ? undefined : encodeMeta(this.#proposing.command);
  }

  proposed(entry: Entry | undefined): void {
    const waiting = this.#proposing;
    this.#proposing = undefined;
    if (waiting === undefined) return;
    if (entry !== undefined) this.#inflight.set(entry.index, waiting);
    else waiting.done?.({ ok: false, reason: 'overloaded' });
  }

  apply(entry: Entry): void {
    const waiting = this.#inflight.get(entry.index);
    this.#inflight.delete(entry.index);
    if (entry.kind !== 'command') return;
    const before = this.state;
    const command = decodeMetaCommand(entry.data);
    const { record, refusal } = applyMetaCommand(this.#record, command, this.#init.fixed.hash);
    this.#record = record;
    if (record !== undefined && record.state !== before) this.#init.stateChanged(record.state);
    if (waiting?.done !== undefined) waiting.done(resultOf(waiting.command, record?.state, refusal));
  }

  snapshot(): SnapshotSource {
    let rest = encodeMeta(this.#record ?? null);
    return {
      next() {
        if (rest.length === 0) return undefined;
        const chunk = rest.slice(0, SNAPSHOT_CHUNK_BYTES);
        rest = rest.subarray(SNAPSHOT_CHUNK_BYTES);
        return chunk;
      },
      abandon() {
        rest = rest.subarray(rest.length);
      },
    };
  }

  restore(): SnapshotTarget {
    const chunks: Uint8Array[] = [];
    let record: MetaRecord | undefined;
    return {
      add: (chunk) => void chunks.push(chunk),
      complete: () => {
        record = decodeMetaRecord(chunks);
      },
      install: () => {
        this.#record = record;
        if (record !== undefined) this.#init.stateChanged(record.state);
      },
    };
  }

  configChanged(_config: GroupConfig): void {
    this.#init.configChanged();
  }

  statusChanged(status: { readonly isLeader: boolean; readonly leader: NodeId }): void {
    const wasLeader = this.#isLeader;
    this.#isLeader = status.isLeader;
    this.#leader = status.leader;
    if (status.isLeader) {
      if (this.#record === undefined) this.#init.requestProposal();
      return;
    }
    if (!wasLeader) return;
    const waiting = this.#waiting.splice(0);
    for (const { done } of waiting) done?.({ ok: false, reason: 'notLeader', leader: status.leader });
    // Another leader may still commit them.
    for (const { done } of this.#inflight.values()) done?.({ ok: false, reason: 'unknownOutcome' });
    this.#inflight.clear();
  }
}

/**
 * The result of an applied command.
 *
 * @param state the state after the command, changed or not
 */
function resultOf(
  command: MetaCommand,
  state: MetaState | undefined,
  refusal: ChangeFailure | undefined,
): ChangeResult {
  if (refusal === undefined) return { ok: true, version: versionOf(command.type, state) };
  if (refusal !== 'tooFewUndrained' || command.type !== 'drain' || state === undefined)
    return { ok: false, reason: refusal };
  return { ok: false, reason: refusal, message: tooFewUndrainedText(state.nodes, command.change.node) };
}

/** The version number of the part of the state that a command of this type changes. */
function versionOf(type: MetaCommand['type'], state: MetaState | undefined): number {
  const { version, rules, tokens, clusterVersion } = state ?? {};
  if (type === 'upgrade') return clusterVersion ?? 0;
  if (type === 'rules') return rules?.version ?? 0;
  return (type === 'tokens' ? tokens?.version : version) ?? 0;
}
