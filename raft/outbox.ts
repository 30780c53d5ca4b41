/**
 * Messages by peer, collected during a turn and sent at its end. The Map keeps its boxes from turn to turn, because
 * a Map that is cleared often keeps old contents alive for the garbage collector (src/wire/by-id.ts).
 */
import type { NodeId } from './types.ts';

/** Collects items by peer. */
export class Outbox<Item> {
  readonly #boxes = new Map<NodeId, { items: Item[] }>();

  get isEmpty(): boolean {
    for (const { items } of this.#boxes.values()) if (items.length > 0) return false;
    return true;
  }

  /** Adds an item for `to`. */
  post(to: NodeId, item: Item): void {
    const box = this.#boxes.get(to);
    if (box === undefined) this.#boxes.set(to, { items: [item] });
    else box.items.push(item);
  }

  /** Drops all items for which `stays` returns false. */
  keep(stays: (item: Item, to: NodeId) => boolean): void {
    for (const [to, box] of this.#boxes) box.items = box.items.filter((item) => stays(item, to));
  }

  /** Empties the outbox. Calls `send` once for each peer that has items, in the order they were posted. */
  flush(send: (to: NodeId, items: readonly Item[]) => void): void {
    for (const [to, box] of this.#boxes) {
      const { items } = box;
      if (items.length === 0) continue;
      box.items = [];
      send(to, items);
    }
  }
}
