/** Random draws of the nemeses, from seeded randomness. */
import type { RandomBelow } from '../../../raft/core-state.ts';
import { seeded } from '../../raft/seeded.ts';

export function chance(random: RandomBelow, oneIn: number): boolean {
  return random(oneIn) === 0;
}

/** A whole number from `min` to `max`, both included. */
export function between(random: RandomBelow, min: number, max: number): number {
  return min + random(max - min + 1);
}

/** Like `between`, but every order of magnitude is equally likely. */
export function magnitude(random: RandomBelow, min: number, max: number): number {
  return Math.round(min * (max / min) ** (random(1_001) / 1_000));
}

export function pick<T>(random: RandomBelow, items: readonly [T, ...T[]]): T {
  return items[random(items.length)] ?? items[0];
}

export function shuffled<T>(random: RandomBelow, items: readonly T[]): T[] {
  const left = [...items];
  return items.flatMap(() => left.splice(random(left.length), 1));
}

/** A separate random stream for a nemesis that runs beside others. */
export function fork(random: RandomBelow): RandomBelow {
  return seeded(random(2 ** 31 - 1));
}
