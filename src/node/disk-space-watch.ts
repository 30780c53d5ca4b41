/** Watches the free disk space. Near the configured minimum, this node proposes nothing more. */
import type { Logger } from 'pino';
import { freeBytes, isLowDisk } from '../../storage/free-space.ts';

/** What `DiskSpaceWatch` needs. */
export interface DiskSpaceWatchInit {
  readonly directory: string;
  /** The minimum in bytes; it may change. */
  readonly floorBytes: () => number;
  readonly logger: Logger;
  /** Called after every check. */
  readonly seen: (isLow: boolean) => void;
}

/** The watch of one disk. */
export class DiskSpaceWatch {
  readonly #init: DiskSpaceWatchInit;
  #isLow = false;

  constructor(init: DiskSpaceWatchInit) {
    this.#init = init;
  }

  /** Checks the free space. @throws the error of the system, if it does not report that */
  async check(): Promise<void> {
    const { directory, logger, seen } = this.#init;
    const floorBytes = this.#init.floorBytes();
    const isLow = isLowDisk(await freeBytes(directory), floorBytes);
    if (isLow !== this.#isLow) logger.warn({ isLow, floorBytes }, 'free disk space');
    this.#isLow = isLow;
    seen(isLow);
  }
}
