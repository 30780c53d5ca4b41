/** A node without room for new users refuses them before their requests cost a write. */
import type { GroupId, NodeId } from '../../raft/types.ts';
import { type Asked, askedBy, limitsOf } from './id-ledger.ts';
import type { Proposed } from './leadership-checker.ts';
import type { SimNode } from './sim-node.ts';
import { check } from './story.ts';

export interface RoomCheckerInit {
  /** After that entry something is remembered of this user under this rule. */
  readonly isKnownAt: (group: GroupId, index: number, asked: Asked) => boolean;
  readonly nodes: () => readonly SimNode[];
  readonly now: () => number;
  readonly after: (delayMillis: number, run: () => void) => void;
}

const CHECK_MILLIS = 200;
/** By then a node has noticed that its state exceeds its maximum. */
const NOTICED_MILLIS = 2_000;
/** Far enough over that it does not change between two polls. */
const OVER = 1.05;

export class RoomChecker {
  readonly #init: RoomCheckerInit;
  /** Since when the state of a process exceeds its maximum. */
  readonly #over = new Map<NodeId, { readonly life: number; readonly sinceMillis: number }>();

  constructor(init: RoomCheckerInit) {
    this.#init = init;
    this.#checkLater();
  }

  #checkLater(): void {
    const { after, nodes, now } = this.#init;
    after(CHECK_MILLIS, () => {
      for (const node of nodes()) {
        if (!isOver(node)) this.#over.delete(node.id);
        else if (this.#over.get(node.id)?.life !== node.life)
          this.#over.set(node.id, { life: node.life, sinceMillis: now() });
      }
      this.#checkLater();
    });
  }

  proposed({ node, group, index, request }: Proposed): void {
    // A request with an id may wait for the answer of an earlier attempt.
    const limits = limitsOf(askedBy(request));
    const isSomebodyNew =
      request.requestId === undefined && !limits.every((one) => this.#init.isKnownAt(group, index, one));
    check(
      !this.#hasNoRoom(node) || !isSomebodyNew,
      () => `node ${node} has no room, but proposes in group ${group}: ${JSON.stringify(request)}`,
    );
  }

  #hasNoRoom(node: NodeId): boolean {
    const over = this.#over.get(node);
    const found = this.#init.nodes().find(({ id }) => id === node);
    if (over === undefined || found === undefined) return false;
    if (!isOver(found)) {
      this.#over.delete(node);
      return false;
    }
    return over.life === found.life && this.#init.now() - over.sinceMillis >= NOTICED_MILLIS;
  }
}

function isOver({ core, stateBytesMax, isRunning }: SimNode): boolean {
  if (core === undefined || !isRunning) return false;
  let bytes = 0;
  for (const { stateBytes } of core.partitions.values()) bytes += stateBytes;
  return bytes > stateBytesMax * OVER;
}
