/** The events of a run: a hash of every step, and on demand a line of text for each. */

export type Say = (line: string) => void;

/** A check failed. The run ends here; its seed repeats it. */
export class Violation extends Error {
  override readonly name = 'Violation';
}

/** Why a run ended: the message of a violation, or the stack of any other error. */
export function wordsOfEnd(error: unknown): string {
  if (error instanceof Violation) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

export class Story {
  #hash = 0x811c9dc5;
  readonly #say: Say | undefined;
  readonly #now: () => number;
  readonly #startMillis: number;
  steps = 0;
  readonly faults = new Map<string, number>();
  /** How often the run reached rare situations; see Coverage. */
  readonly coverage = new Map<string, number>();

  constructor(now: () => number, say: Say | undefined) {
    this.#now = now;
    this.#startMillis = now();
    this.#say = say;
  }

  /** Equal for two runs that did the same things at the same moments. */
  get hash(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, '0');
  }

  /** Milliseconds since the start. */
  get elapsed(): number {
    return this.#now() - this.#startMillis;
  }

  step(kind: number, a: number, b: number): void {
    this.steps += 1;
    this.#mix(kind * 1_048_576 + a * 1_024 + b);
    this.#mix(Math.floor(this.elapsed * 1_000));
  }

  #mix(value: number): void {
    this.#hash = Math.imul(this.#hash ^ value, 0x01000193);
    this.#hash = Math.imul(this.#hash ^ (this.#hash >>> 15) ^ Math.floor(value / 2 ** 32), 0x85ebca6b);
  }

  /** Counts a fault and prints it. */
  fault(name: string, detail = ''): void {
    this.faults.set(name, (this.faults.get(name) ?? 0) + 1);
    this.report(() => `fault: ${name} ${detail}`);
  }

  seen(name: string): void {
    this.coverage.set(name, (this.coverage.get(name) ?? 0) + 1);
  }

  /** The line is built only if there is a listener. */
  report(line: () => string): void {
    this.#say?.(`${this.elapsed.toFixed(3).padStart(12)}  ${line()}`);
  }

  get isReported(): boolean {
    return this.#say !== undefined;
  }
}

export function check(condition: boolean, message: () => string): asserts condition {
  if (!condition) throw new Violation(message());
}
