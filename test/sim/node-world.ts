/** The environment of a simulated node. */
import type { GroupApplication } from '../../raft/driver/multi-raft.ts';
import type { GroupWrite, LogStore } from '../../raft/driver/store.ts';
import type { GroupId, NodeId } from '../../raft/types.ts';
import type { ClockVerdict } from '../../src/clock/clock-rates.ts';
import type { NodeCore } from '../../src/node/node-core.ts';
import type { Hash32 } from '../../src/partition/hash.ts';
import type { DiskBoundary } from './disk.ts';
import type { PeerFrameType } from '../../src/wire/frame.ts';
import type { SimNetwork } from './network.ts';
import type { Random } from './random.ts';
import type { Settings } from './settings.ts';
import type { Story, Violation } from './story.ts';

/** The layers that a mutant may put between a node and its environment. */
export interface Seams {
  wrapStore?(store: LogStore, after: (delayMillis: number, run: () => void) => void): LogStore;
  /** A node whose directory was lost makes a new one, instead of refusing to start. */
  readonly recreatesDirectories?: boolean;
}

/**
 * The points where a process interacts with its environment. `send`: before a frame leaves. `receive`: before a
 * received frame is read.
 */
export type Boundary = DiskBoundary | 'send' | 'receive';

export interface NodeWorld {
  readonly settings: Settings;
  readonly random: Random;
  readonly story: Story;
  readonly hash: Hash32;
  readonly seams: Seams;
  readonly network: SimNetwork;
  now(): number;
  after(delayMillis: number, run: () => void): void;
  /** Runs at the end of the current step. */
  soon(run: () => void): void;
  /** A promise is being settled: the step ends when everything that follows from it has happened. */
  settling(): void;
  durable(node: NodeId, writes: readonly GroupWrite[]): void;
  /** A process holds a group from now on. */
  groupAdded(node: NodeId, group: GroupId, app: GroupApplication, applied: number): void;
  /** A process of `node` has read its disk, and begins. */
  readonly began?: (node: NodeId, core: NodeCore) => void;
  readonly clockJudged?: (node: NodeId, verdict: ClockVerdict) => void;
  sending(node: NodeId, to: NodeId, type: PeerFrameType, payload: Uint8Array): void;
  ended(node: NodeId): void;
  /** The contents of this node's disk are lost for good. */
  directoryLost(node: NodeId): void;
  /** The directory of `node` is a new one from now on. */
  madeAnew?(node: NodeId): void;
  /** The process of `node` is at a point where it may die: the world may crash it here. */
  readonly reached?: (node: NodeId, boundary: Boundary) => void;
  /** From when a write is durable until its process learns of it; 0 if absent. */
  readonly completionMillis?: number;
  /** Callers in the product may swallow exceptions, so the world checks after each step. */
  violated(violation: Violation): void;
}
