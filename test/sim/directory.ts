/**
 * The directory of a simulated machine, for all its processes: what a starting process finds there, and what is wrong
 * with it.
 */
import { type DiskContent, emptyDisk, type TornBatch } from './database.ts';
import { damageOfFlip, damageOfTear } from './disk-image.ts';
import type { Random } from './random.ts';

export class SimDirectory {
  content: DiskContent = emptyDisk();
  /** Something was written to it. */
  #isUsed = false;
  /** The damage that the next start must find. */
  #damage: 'none' | 'flipped' | 'marked' | TornBatch = 'none';
  /** It is an older copy, and no process has noticed. */
  #isRolledBack = false;

  get isDamaged(): boolean {
    return this.#damage !== 'none';
  }

  get isRolledBack(): boolean {
    return this.#isRolledBack;
  }

  /** Its contents must not be relied on. */
  get isDoubtful(): boolean {
    return this.isDamaged || this.#isRolledBack;
  }

  written(): void {
    this.#isUsed = true;
  }

  /** A process has found damage, or that it was put back: no other may begin here. */
  mark(): void {
    this.#damage = 'marked';
  }

  /** Some bits are wrong; false if nothing was ever written. */
  flip(): boolean {
    if (!this.#isUsed) return false;
    this.#damage = 'flipped';
    return true;
  }

  /** A process left it with bits that flipped meanwhile. */
  spoil(): void {
    if (!this.isDamaged) this.#damage = 'flipped';
  }

  tear(torn: TornBatch): void {
    this.#damage = torn;
  }

  putBack(copy: DiskContent): void {
    this.content = copy;
    this.#isRolledBack = true;
  }

  /** It has caught up to what it held before it was put back. */
  trust(): void {
    this.#isRolledBack = false;
  }

  lose(): void {
    this.content = emptyDisk();
    this.#isUsed = false;
  }

  makeAnew(): void {
    this.content = emptyDisk();
    this.#damage = 'none';
    this.#isRolledBack = false;
  }

  /**
   * The damage that a starting process finds, synchronously if it is known; undefined: none, and the process would
   * begin.
   */
  found(random: Random): string | Promise<string | undefined> {
    const damage = this.#damage;
    if (damage === 'marked') return 'found before';
    return typeof damage === 'object' ? damageOfTear(damage) : damageOfFlip(this.content, random);
  }
}
