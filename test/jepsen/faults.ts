/** What can be wrong with one direction of a fault proxy, and a count of what that did. Moves no byte itself. */

/** What is wrong with one direction. Everything that is absent works. */
export interface Faults {
  /** Connections are reset, and new ones as soon as they are made. */
  readonly cut?: boolean;
  /** Bytes are read and lost. A connection that lost some is reset when the fault ends: a stream has no holes. */
  readonly blackHole?: boolean;
  /** Bytes are read and kept, as many as fit; when the fault ends they come in one burst. */
  readonly clog?: boolean;
  /** Nothing is read, so that the sender's own buffers fill up. */
  readonly neverRead?: boolean;
  readonly delayMillis?: number;
  /** A delay of 0 to this is added to each read. The order is kept, as TCP does. */
  readonly jitterMillis?: number;
  readonly bytesPerSecond?: number;
  /** One read in so many, by chance, has one bit flipped. */
  readonly flipOneIn?: number;
  /** One read in so many, by chance, is passed on in part, and then the connection is reset. */
  readonly resetOneIn?: number;
}

export function holdsBack({ blackHole, clog, neverRead }: Faults): boolean {
  return blackHole === true || clog === true || neverRead === true;
}

/** One direction of a proxy: the faults of all its connections, and what they did. */
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
