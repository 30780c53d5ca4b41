/**
 * On the leader of group 0: has recorded what nodes say of themselves when they connect, who they are and where. Keeps
 * what those say that are connected now, and decides nothing: group 0 takes the first incarnation of an id for ever.
 */
import type { NodeId } from '../../raft/types.ts';
import type { Hello } from '../wire/hello.ts';
import type { MetaGroup } from './meta-group.ts';
import { tellsMore } from './meta-state.ts';
import type { Introduction } from './cluster-state.ts';

const LOOK_TICKS = 10;

export class Registrar {
  readonly #meta: MetaGroup;
  /** By node; no more than there are connections. */
  readonly #introductions = new Map<NodeId, Introduction>();
  #ticks = 0;

  /** @param self what this node says: it need not connect to itself */
  constructor(meta: MetaGroup, self: Introduction) {
    this.#meta = meta;
    this.#introductions.set(self.id, self);
  }

  /** The latest is the one that counts. */
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
    if (!isLeader || state === undefined || this.#ticks % LOOK_TICKS !== 0) return;
    for (const member of [...state.nodes, ...state.leaving]) {
      const said = this.#introductions.get(member.id);
      if (said !== undefined && tellsMore(member, said)) this.#meta.introduce(said);
    }
  }
}
