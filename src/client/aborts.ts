/**
 * Runs callbacks when an `AbortSignal` aborts. It adds a single listener to each signal, however many calls wait with
 * it, because Node scans all listeners of a signal each time one is added.
 */

/** The part of an `AbortSignal` that the client uses. */
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

/** Callbacks by signal. A callback is removed with the signal and the function it was added with. */
export class Aborts {
  readonly #bySignal = new Map<AbortSignalLike, Waiting>();

  /** Calls `run` when `signal` aborts, unless `delete` is called first. `signal` must not be aborted yet. */
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
