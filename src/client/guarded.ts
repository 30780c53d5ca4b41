/** Listeners of users: whatever they throw, or reject with later, comes between us and no decision. */
import { emitWarning } from 'node:process';
import { inspect } from 'node:util';

/**
 * Tells `listener`, if there is one. What it throws first is a warning of the process, which goes on: an exception that nobody catches would
 * end it, with all that is open.
 */
export function guarded<A extends readonly unknown[]>(
  name: string,
  listener: ((...args: A) => unknown) | undefined,
): (...args: A) => void {
  let isTold = false;
  const failed = (error: unknown): void => {
    if (isTold) return;
    isTold = true;
    emitWarning(`${name} of quorate threw; what it throws is not told again`, {
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
