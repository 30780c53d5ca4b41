/**
 * Drains this node as long as an operator wants that: it hands over its leaderships again and again, and its
 * listeners refuse requests. The wish is stored in group 0, so it survives a restart. Driven by ticks.
 */
import type { MultiRaft } from '../../raft/driver/multi-raft.ts';
import type { NodeId } from '../../raft/types.ts';
import type { MetaState } from '../meta/cluster-state.ts';

/** What `Draining` needs. */
export interface DrainingInit {
  readonly nodeId: NodeId;
  readonly raft: Pick<MultiRaft, 'avoidLeading'>;
  /** The state of group 0 on this node. */
  readonly state: () => MetaState | undefined;
  /** Called when draining begins and ends. */
  readonly drained?: ((isDraining: boolean) => void) | undefined;
}

/** How often handing over is retried. */
const AGAIN_TICKS = 10;

/** The draining of one node. */
export class Draining {
  readonly #init: DrainingInit;
  #seen: MetaState | undefined;
  #isOn = false;
  #ticks = 0;

  constructor(init: DrainingInit) {
    this.#init = init;
  }

  /** The node is drained, as of the last tick. */
  get isOn(): boolean {
    return this.#isOn;
  }

  /** Call once per tick. */
  tick(): void {
    const { raft, state } = this.#init;
    this.#ticks += 1;
    this.#follow(state());
    if (this.#isOn && this.#ticks % AGAIN_TICKS === 0) raft.avoidLeading('draining', true);
  }

  #follow(state: MetaState | undefined): void {
    // The state is an immutable object, replaced with every change.
    if (state === undefined || state === this.#seen) return;
    this.#seen = state;
    const { nodeId, raft, drained } = this.#init;
    const self = [...state.nodes, ...state.leaving].find(({ id }) => id === nodeId);
    const isOn = self?.draining === true;
    if (isOn === this.#isOn) return;
    this.#isOn = isOn;
    raft.avoidLeading('draining', isOn);
    drained?.(isOn);
  }
}
