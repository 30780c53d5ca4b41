/** The directory of a simulated machine, whoever writes to it: what a process that starts finds there, and what is wrong with it. */
import { type DiskContent, emptyDisk, type TornBatch } from './database.ts';
import { damageOfFlip, damageOfTear } from './disk-image.ts';
import type { Random } from './random.ts';

export class SimDirectory {
  content: DiskContent = emptyDisk();
  /** Something was written to it. */
  #isUsed = false;
  /** What the next start must find. */
  #damage: 'none' | 'flipped' | 'marked' | TornBatch = 'none';
  /** It is an older copy, and nobody has noticed. */
  #isRolledBack = false;

  get isDamaged(): boolean {
    return this.#damage !== 'none';
  }

  get isRolledBack(): boolean {
    return this.#isRolledBack;
  }

  /** Nobody should count on what is in it. */
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

  /** Some bits are not what they were; false if nothing was ever written. */
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

  /** It has again what it had before it was put back. */
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

  /** What a process that starts finds, at once if that is known; undefined: nothing, and it would begin. */
  found(random: Random): string | Promise<string | undefined> {
    const damage = this.#damage;
    if (damage === 'marked') return 'found before';
    return typeof damage === 'object' ? damageOfTear(damage) : damageOfFlip(this.content, random);
  }
}
