/** The part of a simulated cluster that its users see, and the attempts that they make. */
import type { AllowAnswer } from '../../src/api/answer.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import type { AskChecker } from './ask-checker.ts';
import type { Coverage } from './coverage.ts';
import type { LimitChecker } from './limit-checker.ts';
import type { Random } from './random.ts';
import type { RejectionChecker, Try } from './rejection-checker.ts';
import type { Settings } from './settings.ts';
import type { SimNode } from './sim-node.ts';
import type { Story } from './story.ts';

export interface ClientWorld {
  readonly settings: Settings;
  readonly random: Random;
  readonly story: Story;
  readonly limits: LimitChecker;
  readonly rejections: RejectionChecker;
  readonly asks: AskChecker;
  readonly coverage: Coverage;
  /** Nodes that clients may ask now. */
  readonly askable: () => readonly SimNode[];
  readonly now: () => number;
  readonly after: (delayMillis: number, run: () => void) => void;
  readonly partitionOf: (userId: string) => number;
  committedIndex(group: number): number;
  /** The leader of the partition of this user, and group time there. */
  leading(userId: string): { readonly node: SimNode; readonly groupMillis: number } | undefined;
  /** The client got the answer that this request was not proposed, so no log of `group` may hold it. */
  nowhere(group: number, requestId: string): void;
  /** A partition or a node may have no room for another user. */
  mayBeFull(): boolean;
  /** How much group time may have gained on real time, because of a wrong clock that was not found yet. */
  gainedMillis(): number;
}

/** One attempt of a client at one node. */
export interface Attempt {
  readonly request: AllowRequest;
  readonly node: SimNode;
  readonly life: number;
  readonly invokedAt: number;
  /** By the clock of the node, when the request was in its socket. */
  readonly arrivedMonotonic: number;
  /** 1 for the first attempt of a question. */
  readonly count: number;
  readonly done: ((answer: AllowAnswer | undefined, partition: number) => void) | undefined;
  readonly charge: Try;
  answered: boolean;
}
