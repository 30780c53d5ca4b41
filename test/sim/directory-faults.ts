/**
 * Faults of directories, most of them permanent: lost, damaged, torn, made anew, or put back from an older copy. They
 * happen only where a quorum is left, and where the node forgets no promise.
 */
import type { Faults, Hand } from './nemesis-world.ts';
import type { SimNode } from './sim-node.ts';

type Name = 'loseDirectory' | 'flipBits' | 'spoilSnapshot' | 'restoreDirectory' | 'makeAnew' | 'tornBatch';

/** The older a copy, the less likely it may be put back. */
const COPIES_MAX = 16;

export class DirectoryFaults {
  readonly #hand: Hand;

  constructor(hand: Hand) {
    this.#hand = hand;
  }

  /** Each is recorded where it happens: whether it does depends on the faults already active. */
  readonly faults: Faults<Name> = {
    loseDirectory: ({ victim }) => {
      if (!this.#mayLose(victim)) return;
      this.#reported('loseDirectory', victim);
      this.#hand.world.directoryLost(victim.id);
      victim.lose();
    },
    flipBits: ({ victim }) => {
      if (!this.#mayLose(victim)) return;
      this.#hand.crash(victim);
      if (victim.flipBits()) this.#reported('flipBits', victim);
    },
    spoilSnapshot: ({ victim }) => {
      if (this.#mayLose(victim) && victim.spoilSnapshot()) this.#reported('spoilSnapshot', victim);
    },
    restoreDirectory: ({ victim }) => this.#restore(victim, COPIES_MAX),
    makeAnew: ({ victim }) => {
      if (!this.#mayLose(victim) && !victim.isStranger) return;
      this.#reported('makeAnew', victim);
      this.#hand.world.directoryLost(victim.id);
      victim.makeAnew();
    },
    tornBatch: ({ victim }) => {
      if (this.#mayLose(victim) && victim.tearBatch()) this.#reported('tornBatch', victim);
    },
  };

  #mayLose(node: SimNode): boolean {
    return this.#hand.world.mayLose(node);
  }

  #reported(fault: Name, { id }: SimNode): void {
    this.#hand.world.story.fault(fault, `(node ${id})`);
  }

  /** A copy is made now and put back later: the node starts as it was then. */
  #restore(node: SimNode, copies: number): void {
    const { copyOf, mayGoBack, wentBack, whenCaughtUp } = this.#hand.world;
    if (!node.isUp || node.isDoubtful) return;
    const copy = copyOf(node.id);
    const disk = node.copyDirectory();
    this.#hand.later(300, () => {
      if (!node.isUp || !this.#mayLose(node)) return;
      if (!mayGoBack(node.id, copy)) {
        if (copies > 1) this.#restore(node, copies - 1);
        return;
      }
      // A kept write would be one more promise.
      node.crash('lost');
      this.#reported('restoreDirectory', node);
      wentBack(node.id, copy);
      node.putBack(disk);
      whenCaughtUp(node, () => node.directory.trust());
    });
  }
}
