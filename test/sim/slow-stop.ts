/**
 * A graceful stop, as by an operator: the process hands its leaderships over, answers open requests, then takes no
 * more.
 */
import type { NodeCore } from '../../src/node/node-core.ts';

export interface Stopping {
  /** Runs in the process, if that still runs then. */
  later(delayMillis: number, run: () => void): void;
  core(): NodeCore | undefined;
  /** It takes no more requests. */
  close(): void;
  end(): void;
}

export interface Patience {
  /** How long it continues to take requests after it has handed over. */
  readonly lingerMillis: number;
  /** How long it waits for open requests after that. */
  readonly openMillis: number;
}

/** How often it checks its progress. */
const CHECK_MILLIS = 10;

export function stopSlowly(stopping: Stopping, left: Patience): void {
  stopping.later(CHECK_MILLIS, () => {
    const core = stopping.core();
    if (core?.hasLeft !== true) {
      stopSlowly(stopping, left);
      return;
    }
    const { lingerMillis, openMillis } = left;
    if (lingerMillis > 0) {
      stopSlowly(stopping, { lingerMillis: lingerMillis - CHECK_MILLIS, openMillis });
      return;
    }
    stopping.close();
    if (!core.isIdle && openMillis > 0)
      stopSlowly(stopping, { lingerMillis, openMillis: openMillis - CHECK_MILLIS });
    else {
      core.router.close();
      stopping.end();
    }
  });
}
