/** What a page knows of the cluster: the last that its node told, and whether more comes. Plain data. */
import type { Fault, LiveCluster, LiveFigures } from '../api/monitoring.ts';
import { NO_SAMPLES, type Samples } from './samples.ts';

/**
 * - `connecting`: nothing came yet
 * - `live`
 * - `signIn`: the node asks for a token, or for another one
 * - `lost`: nothing comes any more; it is asked again and again
 */
export type FeedStatus = 'connecting' | 'live' | 'signIn' | 'lost';

export interface Feed {
  readonly status: FeedStatus;
  /** Why it is not live. */
  readonly reason: string;
  /** It is not live, and yet its node answers: it refuses. */
  readonly isAnswered: boolean;
  /** When the node told something last, by the clock of whoever looks; 0: never. */
  readonly heardMillis: number;
  readonly cluster: LiveCluster | undefined;
  readonly figures: LiveFigures | undefined;
  /** Latest first. */
  readonly faults: readonly Fault[];
  readonly samples: Samples;
}

export const NO_FEED: Feed = {
  status: 'connecting',
  reason: '',
  isAnswered: false,
  heardMillis: 0,
  cluster: undefined,
  figures: undefined,
  faults: [],
  samples: NO_SAMPLES,
};
