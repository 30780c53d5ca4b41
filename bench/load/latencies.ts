/**
 * Latencies of one load process as an HDR histogram in whole microseconds. It can be encoded as text for the parent
 * process. Histograms may be merged; percentiles may not.
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

  /** Decodes a text from `encode`, perhaps of another process. */
  static decode(text: string): Latencies {
    return new Latencies(decodeFromCompressedBase64(text, 32, false));
  }

  /** Records one latency. @param millis at least 0; more than a minute counts as a minute */
  record(millis: number): void {
    this.#histogram.recordValue(Math.min(MICROS_MAX, Math.max(1, Math.round(millis * 1_000))));
  }

  add(other: Latencies): void {
    this.#histogram.add(other.#histogram);
  }

  get count(): number {
    return this.#histogram.totalCount;
  }

  /** A percentile in milliseconds; NaN if nothing was recorded. @param percent from 0 to 100 */
  percentileMillis(percent: number): number {
    if (this.count === 0) return Number.NaN;
    return this.#histogram.getValueAtPercentile(percent) / 1_000;
  }

  encode(): string {
    return encodeIntoCompressedBase64(this.#histogram);
  }
}
