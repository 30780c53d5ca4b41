/**
 * Who waits by which signal, with one listener for each signal: Node looks through all that a signal has for each new one, and many wait by
 * the same.
 */
/** An `AbortSignal`. */
export interface AbortSignalLike {
  readonly aborted: boolean;
  readonly reason?: unknown;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

interface Waiting {
  readonly runs: Set<() => void>;
  readonly listener: () => void;
}

export class Aborts {
  readonly #bySignal = new Map<AbortSignalLike, Waiting>();

  /** @param run called when `signal` is aborted, unless it is deleted before */
  add(signal: AbortSignalLike, run: () => void): void {
    const found = this.#bySignal.get(signal);
    if (found !== undefined) {
      found.runs.add(run);
      return;
    }
    const runs = new Set([run]);
    const listener = (): void => {
      for (const each of runs) each();
    };
    signal.addEventListener('abort', listener);
    this.#bySignal.set(signal, { runs, listener });
  }

  delete(signal: AbortSignalLike, run: () => void): void {
    const found = this.#bySignal.get(signal);
    if (found === undefined || !found.runs.delete(run) || found.runs.size > 0) return;
    this.#bySignal.delete(signal);
    signal.removeEventListener('abort', found.listener);
  }
}
