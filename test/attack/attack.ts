/** Types of an attack and of its outcome. */
import type { Target } from './target.ts';
import type { Listener } from './scale.ts';

export interface Attack {
  readonly name: string;
  readonly listener: Listener;
  /** @throws never because of an answer of the cluster: answers are in the outcome */
  readonly run: (target: Target) => Promise<Outcome>;
}

export interface Outcome {
  /** Requests, frames or connections. */
  readonly tries: number;
  /** Successful intrusions: the attempt and the answer. Empty if none succeeded. */
  readonly gotIn: readonly string[];
}
