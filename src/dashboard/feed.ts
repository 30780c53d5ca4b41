/** The data that the page shows: the latest reports of its node, and whether the connection still works. Plain data. */
import type { Fault, LiveCluster, LiveFigures } from '../api/monitoring.ts';
import { NO_SAMPLES, type Samples } from './samples.ts';

/**
 * State of the connection to the node.
 *
 * - `connecting`: nothing has arrived yet
 * - `live`: reports arrive every second
 * - `signIn`: the node asks for a token, or refuses the one it got
 * - `lost`: reports stopped; the page keeps reconnecting
 */
export type FeedStatus = 'connecting' | 'live' | 'signIn' | 'lost';

/** Everything the page has received from its node. */
export interface Feed {
  readonly status: FeedStatus;
  /** Why the feed is not live. */
  readonly reason: string;
  /** The feed is not live because the node refuses it, not because the node is silent. */
  readonly isAnswered: boolean;
  /** When the last report arrived, by the clock of the browser; 0 if none did. */
  readonly heardMillis: number;
  readonly cluster: LiveCluster | undefined;
  readonly figures: LiveFigures | undefined;
  /** Newest first. */
  readonly faults: readonly Fault[];
  readonly samples: Samples;
}

/** The feed before the first report. */
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
