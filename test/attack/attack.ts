/** What an attack is, and what came of it. */
import type { Target } from './target.ts';
import type { Door } from './scale.ts';

export interface Attack {
  readonly name: string;
  readonly door: Door;
  /** @throws never because of what the cluster answers: that is in the outcome */
  readonly run: (target: Target) => Promise<Outcome>;
}

export interface Outcome {
  /** Requests, frames or connections. */
  readonly tries: number;
  /** Each a way in: what was tried, and what came back. Empty: nothing got in. */
  readonly gotIn: readonly string[];
}
