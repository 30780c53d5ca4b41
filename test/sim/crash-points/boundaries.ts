/** Counts the I/O boundaries of a run and crashes at one of them. The owner of the run restarts the crashed nodes. */
import type { GroupWrite } from '../../../raft/driver/store.ts';
import type { SimNode } from '../sim-node.ts';
import type { Story } from '../story.ts';
import type { Crash, Point, PointKind, Variant } from './crash.ts';

export interface Surroundings {
  readonly nodes: readonly SimNode[];
  readonly story: Story;
  /** A process crashed here and must be started again. */
  crashed(victim: SimNode, returns: Variant['returns']): void;
}

/** A new process reads every group and then exchanges its first messages. It dies at one of this many boundaries. */
const RECOVERY_BOUNDARIES = 16;

export class Boundaries {
  /** In order, up to the crash. */
  readonly points: Point[] = [];
  /** From the point that the script marks, to its end or to the crash. */
  #isCounting = false;
  /** The largest snapshot that a node installed, in chunks. */
  chunksInstalled = 0;
  readonly #crash: Crash | undefined;
  readonly #surroundings: () => Surroundings;
  /** The node that dies once more, and after how many boundaries. */
  #dyingAgain: { readonly node: SimNode; left: number } | undefined;

  /** @param surroundings called only once boundaries count */
  constructor(crash: Crash | undefined, surroundings: () => Surroundings) {
    this.#crash = crash;
    this.#surroundings = surroundings;
  }

  countFromHere(): void {
    // Not again after the crash.
    if (this.points.length === 0) this.#isCounting = true;
  }

  countNoFurther(): void {
    this.#isCounting = false;
  }

  /** A boundary: the node may die here. Returns false if it did. */
  reached(node: SimNode, kind: PointKind): boolean {
    if (this.#dyingAgain?.node === node) return this.#reachedAgain(node, kind, this.#dyingAgain);
    if (!this.#isCounting) return true;
    const { nodes, story } = this.#surroundings();
    const someoneIsWriting = nodes.some(({ isWriting }) => isWriting);
    this.points.push({ kind, node: node.id, isWriting: node.isWriting, someoneIsWriting });
    const crash = this.#crash;
    if (crash?.at !== this.points.length) return true;
    this.#isCounting = false;
    story.report(() => `boundary ${crash.at}: ${kind} of node ${node.id}`);
    if (crash.returns === 'twice') this.#dyingAgain = { node, left: 1 + (crash.at % RECOVERY_BOUNDARIES) };
    const victims =
      crash.who === 'all' ? nodes.filter(({ state }) => state === 'up' || state === 'starting') : [node];
    for (const victim of victims) this.#strike(victim, crash, victim === node ? crash.returns : 'once');
    return false;
  }

  #reachedAgain(node: SimNode, kind: PointKind, dying: { left: number }): boolean {
    dying.left -= 1;
    if (dying.left > 0) return true;
    this.#dyingAgain = undefined;
    this.#surroundings().story.report(() => `once more: ${kind} of node ${node.id}`);
    if (this.#crash !== undefined) this.#strike(node, this.#crash, 'once');
    return false;
  }

  #strike(victim: SimNode, { fate }: Variant, returns: Variant['returns']): void {
    victim.crash(fate);
    this.#surroundings().crashed(victim, returns);
  }

  durable(writes: readonly GroupWrite[]): void {
    for (const { install } of writes) {
      this.chunksInstalled = Math.max(this.chunksInstalled, install?.chunkCount ?? 0);
    }
  }
}
