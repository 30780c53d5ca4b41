/** The faults of one direction of a fault proxy, and counters of their effects. Moves no bytes itself. */

/** The faults of one direction. Absent fields mean no fault. */
export interface Faults {
  /** Connections are reset, and new ones as soon as they are made. */
  readonly cut?: boolean;
  /**
   * Bytes are read and dropped. A connection that lost some is reset when the fault ends, since a stream has no holes.
   */
  readonly blackHole?: boolean;
  /** Bytes are read and held back, up to a limit. When the fault ends they come in one burst. */
  readonly clog?: boolean;
  /** Nothing is read, so that the sender's own buffers fill up. */
  readonly neverRead?: boolean;
  readonly delayMillis?: number;
  /** Each read gets a random delay from 0 to this. The order is kept, as in TCP. */
  readonly jitterMillis?: number;
  readonly bytesPerSecond?: number;
  /** One read in this many, at random, has one bit flipped. */
  readonly flipOneIn?: number;
  /** One read in this many, at random, is passed on in part, and then the connection is reset. */
  readonly resetOneIn?: number;
}

export function holdsBack({ blackHole, clog, neverRead }: Faults): boolean {
  return blackHole === true || clog === true || neverRead === true;
}

/** One direction of a proxy: the faults of all its connections, and counters of their effects. */
export class Direction {
  readonly #onChange: () => void;
  faults: Faults = {};
  bytesPassed = 0;
  bytesLost = 0;
  bitsFlipped = 0;
  resets = 0;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Replaces all faults at once. */
  set(faults: Faults): void {
    this.faults = faults;
    this.#onChange();
  }

  heal(): void {
    this.set({});
  }
}
