/** Protects the client from errors thrown by callbacks of the user. */
import { emitWarning } from 'node:process';
import { inspect } from 'node:util';

/**
 * Returns a function that calls `listener`, if there is one. The first error that the listener throws, or rejects with,
 * is emitted as a process warning, and later ones are dropped. An uncaught exception would end the process.
 */
export function guarded<A extends readonly unknown[]>(
  name: string,
  listener: ((...args: A) => unknown) | undefined,
): (...args: A) => void {
  let isReported = false;
  const failed = (error: unknown): void => {
    if (isReported) return;
    isReported = true;
    emitWarning(`the quorate callback ${name} threw an error; later errors are not reported`, {
      type: 'QuorateWarning',
      detail: inspect(error),
    });
  };
  return (...args) => {
    try {
      const result = listener?.(...args);
      if (result instanceof Promise) result.catch(failed);
    } catch (error) {
      failed(error);
    }
  };
}
