/**
 * What leaves with the end of a turn, by peer. The Map keeps its boxes, and each turn empties the boxes alone: a Map that is cleared each turn
 * would keep what left alive for the collector (src/wire/by-id.ts).
 */
import type { NodeId } from './types.ts';

export class Outbox<Item> {
  readonly #boxes = new Map<NodeId, { items: Item[] }>();

  get isEmpty(): boolean {
    for (const { items } of this.#boxes.values()) if (items.length > 0) return false;
    return true;
  }

  post(to: NodeId, item: Item): void {
    const box = this.#boxes.get(to);
    if (box === undefined) this.#boxes.set(to, { items: [item] });
    else box.items.push(item);
  }

  /** Drops all items but these. */
  keep(stays: (item: Item, to: NodeId) => boolean): void {
    for (const [to, box] of this.#boxes) box.items = box.items.filter((item) => stays(item, to));
  }

  /** For each peer for which there is something. */
  flush(send: (to: NodeId, items: readonly Item[]) => void): void {
    for (const [to, box] of this.#boxes) {
      const { items } = box;
      if (items.length === 0) continue;
      box.items = [];
      send(to, items);
    }
  }
}
