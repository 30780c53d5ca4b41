/** What an attack is, and what came of it. */
import type { Target } from './target.ts';

export type Door = 'http' | 'resp' | 'grpc' | 'peer';

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

/** How much of a flood. */
export interface Scale {
  /** Connections that are slow, and connections that are many. */
  readonly slow: number;
  readonly many: number;
}

export const FULL_SCALE: Scale = { slow: 1_000, many: 5_000 };
