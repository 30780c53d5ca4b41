/**
 * This node while an operator drains it: what it leads it hands over, asking again for as long as that lasts, and its doors are told
 * to take no requests. Group 0 says whether it does: a process that is killed and started again knows it again. Driven by ticks.
 */
import type { MultiRaft } from '../../raft/driver/multi-raft.ts';
import type { NodeId } from '../../raft/types.ts';
import type { MetaState } from '../meta/cluster-state.ts';

export interface DrainingInit {
  readonly nodeId: NodeId;
  readonly raft: Pick<MultiRaft, 'avoidLeading'>;
  /** As group 0 says it here. */
  readonly state: () => MetaState | undefined;
  /** Told when that begins and ends. */
  readonly drained?: ((isDraining: boolean) => void) | undefined;
}

/** So often it is looked whether somebody takes over what nobody took before. */
const AGAIN_TICKS = 10;

export class Draining {
  readonly #init: DrainingInit;
  #seen: MetaState | undefined;
  #isOn = false;
  #ticks = 0;

  constructor(init: DrainingInit) {
    this.#init = init;
  }

  /** As known since the last tick. */
  get isOn(): boolean {
    return this.#isOn;
  }

  tick(): void {
    const { raft, state } = this.#init;
    this.#ticks += 1;
    this.#look(state());
    if (this.#isOn && this.#ticks % AGAIN_TICKS === 0) raft.avoidLeading('draining', true);
  }

  #look(state: MetaState | undefined): void {
    // It is replaced when it changes.
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
