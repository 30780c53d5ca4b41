/**
 * Latencies of one load process as an HDR histogram in whole microseconds, and their way to the process that asked for
 * them. Histograms are merged, percentiles never are.
 */
import {
  build,
  decodeFromCompressedBase64,
  encodeIntoCompressedBase64,
  type Histogram,
} from 'hdr-histogram-js';

const MICROS_MAX = 60_000_000;

export class Latencies {
  readonly #histogram: Histogram;

  constructor(histogram?: Histogram) {
    this.#histogram =
      histogram ??
      build({
        bitBucketSize: 32,
        lowestDiscernibleValue: 1,
        highestTrackableValue: MICROS_MAX,
        numberOfSignificantValueDigits: 3,
        useWebAssembly: false,
      });
  }

  /** What `encode` made, in another process perhaps. */
  static decode(text: string): Latencies {
    return new Latencies(decodeFromCompressedBase64(text, 32, false));
  }

  /** @param millis at least 0; what is longer than a minute counts as a minute */
  record(millis: number): void {
    this.#histogram.recordValue(Math.min(MICROS_MAX, Math.max(1, Math.round(millis * 1_000))));
  }

  add(other: Latencies): void {
    this.#histogram.add(other.#histogram);
  }

  get count(): number {
    return this.#histogram.totalCount;
  }

  /** @param percent from 0 to 100. NaN if nothing was recorded. */
  percentileMillis(percent: number): number {
    if (this.count === 0) return Number.NaN;
    return this.#histogram.getValueAtPercentile(percent) / 1_000;
  }

  encode(): string {
    return encodeIntoCompressedBase64(this.#histogram);
  }
}
