/** The part of a world that the nemesis may see and change, and the common parts of its faults. */
import type { GroupId, NodeId, SnapshotMeta } from '../../raft/types.ts';
import type { Fate } from '../../storage/memory-store.ts';
import type { DiskCopy } from './disk-copies.ts';
import type { SimNetwork } from './network.ts';
import type { Random } from './random.ts';
import type { Settings } from './settings.ts';
import type { SimNode } from './sim-node.ts';
import type { Story } from './story.ts';

export interface NemesisWorld {
  readonly settings: Settings;
  readonly random: Random;
  readonly story: Story;
  readonly network: SimNetwork;
  readonly nodes: readonly SimNode[];
  readonly after: (delayMillis: number, run: () => void) => void;
  /** Nodes that believe they lead something. */
  readonly leaders: () => SimNode[];
  readonly directoryLost: (node: NodeId) => void;
  readonly copyOf: (node: NodeId) => DiskCopy;
  readonly mayGoBack: (node: NodeId, copy: DiskCopy) => boolean;
  readonly wentBack: (node: NodeId, copy: DiskCopy) => void;
  /** Many clients ask this node at once, for a user of a partition that `leader` leads, if given. */
  readonly crowd: (node: SimNode, leader?: SimNode) => void;
  /** Clients ask this node, one after the other, for partitions that it leads. */
  readonly stream: (leader: SimNode) => void;
  /** Turns the clients on or off. */
  readonly ask: (isActive: boolean) => void;
  readonly whenCaughtUp: (node: SimNode, run: () => void) => void;
  /** Losing this node's directory leaves a quorum of everything. */
  readonly mayLose: (node: SimNode) => boolean;
  /** Asks for a change of members, if none is under way. */
  readonly changeNodes: () => void;
  /** The last snapshot that this node wrote or installed; undefined if there is none. */
  readonly snapshotOf: (node: NodeId, group: GroupId) => SnapshotMeta | undefined;
}

/** The targets of a fault, drawn before the fault is chosen. */
export interface Strike {
  readonly victim: SimNode;
  /** A node that leads something, if there is one. */
  readonly leader: SimNode;
  readonly up: readonly SimNode[];
  /** All machines that exist. */
  readonly nodes: readonly SimNode[];
  readonly all: readonly NodeId[];
}

export type Faults<Name extends string> = Readonly<Record<Name, (strike: Strike) => void>>;

/** Faults come and go as long as this is active. */
export class Hand {
  readonly world: NemesisWorld;
  readonly random: Random;
  isActive = true;

  constructor(world: NemesisWorld, random: Random) {
    this.world = world;
    this.random = random;
  }

  later(meanMillis: number, run: () => void): void {
    this.world.after(this.random.exponential(meanMillis), () => {
      if (this.isActive) run();
    });
  }

  crash(node: SimNode): void {
    node.crash(this.fate());
  }

  /** The fate of the write in flight. */
  fate(): Fate {
    return this.random.chance(this.world.settings.disk.keep) ? 'kept' : 'lost';
  }

  pause(node: SimNode): void {
    node.pause();
    this.later(this.random.pick([50, 500, 3_000]), () => node.resume());
  }
}
