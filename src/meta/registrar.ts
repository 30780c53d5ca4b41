/**
 * On the leader of group 0: proposes to record the incarnation and the addresses that connected nodes introduce. It
 * decides nothing: group 0 keeps the first incarnation of an id forever.
 */
import type { NodeId } from '../../raft/types.ts';
import type { Hello } from '../wire/hello.ts';
import type { MetaGroup } from './meta-group.ts';
import { reportsMore } from './meta-state.ts';
import type { Introduction } from './cluster-state.ts';

const CHECK_TICKS = 10;

/** Keeps the introductions of connected nodes. */
export class Registrar {
  readonly #meta: MetaGroup;
  /** The introductions by node; no more than there are connections. */
  readonly #introductions = new Map<NodeId, Introduction>();
  #ticks = 0;

  /** @param self the introduction of this node, which does not connect to itself */
  constructor(meta: MetaGroup, self: Introduction) {
    this.#meta = meta;
    this.#introductions.set(self.id, self);
  }

  /** A node introduced itself. The latest introduction counts. */
  introduced({ node: id, incarnation, http, peer }: Hello): void {
    const where = { ...(http !== undefined && { http }), ...(peer !== undefined && { peer }) };
    this.#introductions.set(id, { id, incarnation, ...where });
  }

  gone(node: NodeId): void {
    this.#introductions.delete(node);
  }

  tick(): void {
    this.#ticks += 1;
    const { isLeader, state } = this.#meta;
    if (!isLeader || state === undefined || this.#ticks % CHECK_TICKS !== 0) return;
    for (const member of [...state.nodes, ...state.leaving]) {
      const said = this.#introductions.get(member.id);
      if (said !== undefined && reportsMore(member, said)) this.#meta.introduce(said);
    }
  }
}
