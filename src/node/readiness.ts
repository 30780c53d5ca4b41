/**
 * Reports the state of a node, from the loading of its first group to its last answer, for `/readyz` and the
 * listeners.
 */
import type { Readiness } from '../api/cluster-report.ts';
import type { MembershipStatus } from '../meta/own-membership.ts';
import type { NodeCore } from './node-core.ts';

const DRAINING = 'an operator drains this node: `quorate drain --undo` ends that';

/** The readiness of one node. */
export class NodeReadiness {
  #core: NodeCore | undefined;
  #loaded = 0;
  #of: number;
  readonly #isFounder: boolean;
  #isWarm = false;
  #isStopping = false;

  constructor({ groups, isFounder }: { readonly groups: number; readonly isFounder: boolean }) {
    this.#of = groups;
    this.#isFounder = isFounder;
  }

  /** Progress of loading: `loaded` of `of` groups. */
  loading(loaded: number, of: number): void {
    this.#loaded = loaded;
    this.#of = of;
  }

  /** Everything is loaded. */
  started(core: NodeCore): void {
    this.#core = core;
  }

  /** The warm-up of the process has ended. */
  warmedUp(): void {
    this.#isWarm = true;
  }

  /** The node begins to stop. */
  stopping(): void {
    this.#isStopping = true;
  }

  /** Undefined until everything is loaded. */
  get core(): NodeCore | undefined {
    return this.#core;
  }

  /** The node is drained, so its listeners refuse requests. */
  get isDraining(): boolean {
    return this.#core?.draining.isOn === true;
  }

  /** Clients should go elsewhere: the node stops, is drained, or will never be ready again. */
  get wantsNoClients(): boolean {
    return this.#isStopping || this.#core?.isExcluded === true || this.isDraining;
  }

  /** The current state. */
  get current(): Readiness {
    if (this.#isStopping) return { status: 'stopping' };
    if (this.#core === undefined) return { status: 'starting', loaded: this.#loaded, of: this.#of };
    if (this.isDraining && !this.#core.isExcluded)
      return { status: 'draining', reason: DRAINING, leads: this.#core.raft.leaderships };
    if (!this.#core.isReady) return readinessOf(this.#core.membershipStatus, this.#isFounder);
    return this.#isWarm ? { status: 'ready' } : { status: 'starting', loaded: this.#of, of: this.#of };
  }
}

/**
 * The state of a node that is not ready. A founder is never added; it waits for the first leader, which writes the
 * list of nodes.
 */
export function readinessOf(status: MembershipStatus, isFounder: boolean): Readiness {
  switch (status.state) {
    case 'waiting':
      return { status: isFounder ? 'waiting for leaders' : 'waiting to be added' };
    case 'member':
      return { status: 'waiting for leaders' };
    case 'removed':
    case 'refused':
      return { status: status.state, reason: status.reason };
  }
}
