/**
 * Reads of customers' records that are not answered yet. Described requests of one deadline with the same customer read the same, so
 * a read may be taken for that of another of them: which it was shows by what its node asks when it has heard.
 */
import type { Asking } from './described-rounds.ts';
import type { SimNode } from './sim-node.ts';

export interface Reading {
  /** For whom it seems to be. */
  asking: Asking;
}

export class OpenReadings {
  readonly #open = new Set<Reading>();

  begin(asking: Asking): Reading {
    const reading = { asking };
    this.#open.add(reading);
    asking.busy += 1;
    return reading;
  }

  end(reading: Reading): void {
    this.#open.delete(reading);
    reading.asking.busy -= 1;
  }

  /** A process ended: nothing that it reads is heard. */
  lost(node: SimNode): void {
    for (const reading of this.#open) if (reading.asking.node === node) this.#open.delete(reading);
  }

  /**
   * `heard` has just been told its customer's record, and what its node asks then is not for it. Returns one of `known` with the same
   * customer which seems to read still and for which it may be: the two change places. Undefined: there is none.
   */
  exchanged(
    heard: Asking,
    known: readonly Asking[],
    mayAsk: (asking: Asking) => boolean,
  ): Asking | undefined {
    if (heard.confirmed === undefined) return undefined;
    for (const reading of this.#open) {
      const { asking } = reading;
      if (!known.includes(asking) || asking.customer?.key !== heard.customer?.key) continue;
      exchange(reading, heard);
      if (mayAsk(asking)) return asking;
      exchange(reading, asking);
    }
    return undefined;
  }
}

/** The reading is for `other` from now on, who waits for it; whom it seemed to be for has heard what that one has. */
function exchange(reading: Reading, other: Asking): void {
  const { asking } = reading;
  reading.asking = other;
  other.busy += 1;
  asking.busy -= 1;
  asking.confirmed = other.confirmed;
  other.confirmed = undefined;
}
