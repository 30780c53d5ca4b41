/** A graceful stop, as an operator's: others lead first, then what is open is answered, then the process takes no more. */
import type { NodeCore } from '../../src/node/node-core.ts';

export interface Stopping {
  /** In the process, if it still runs then. */
  later(delayMillis: number, run: () => void): void;
  core(): NodeCore | undefined;
  /** It takes no more requests. */
  close(): void;
  end(): void;
}

export interface Patience {
  /** So long it goes on taking requests when others lead. */
  readonly lingerMillis: number;
  /** So long it waits for what is open after that. */
  readonly openMillis: number;
}

/** How often it looks how far it is. */
const LOOK_MILLIS = 10;

export function stopSlowly(stopping: Stopping, left: Patience): void {
  stopping.later(LOOK_MILLIS, () => {
    const core = stopping.core();
    if (core?.hasLeft !== true) {
      stopSlowly(stopping, left);
      return;
    }
    const { lingerMillis, openMillis } = left;
    if (lingerMillis > 0) {
      stopSlowly(stopping, { lingerMillis: lingerMillis - LOOK_MILLIS, openMillis });
      return;
    }
    stopping.close();
    if (!core.isIdle && openMillis > 0)
      stopSlowly(stopping, { lingerMillis, openMillis: openMillis - LOOK_MILLIS });
    else {
      core.router.close();
      stopping.end();
    }
  });
}
