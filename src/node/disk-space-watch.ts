/** Looks how much room is left on the disk: close to the floor, nothing more is proposed here. */
import type { Logger } from 'pino';
import { freeBytes, isLowDisk } from '../../storage/free-space.ts';

export interface DiskSpaceWatchInit {
  readonly directory: string;
  /** It may change. */
  readonly floorBytes: () => number;
  readonly logger: Logger;
  /** Told after every look. */
  readonly seen: (isLow: boolean) => void;
}

export class DiskSpaceWatch {
  readonly #init: DiskSpaceWatchInit;
  #isLow = false;

  constructor(init: DiskSpaceWatchInit) {
    this.#init = init;
  }

  /** @throws the error of the system, if it does not say how much is left */
  async look(): Promise<void> {
    const { directory, logger, seen } = this.#init;
    const floorBytes = this.#init.floorBytes();
    const isLow = isLowDisk(await freeBytes(directory), floorBytes);
    if (isLow !== this.#isLow) logger.warn({ isLow, floorBytes }, 'free disk space');
    this.#isLow = isLow;
    seen(isLow);
  }
}
