/** Connects the load shedding of a node to its event loop and its log. */
import type { Logger } from 'pino';
import { LoadShedder, ROUND_MILLIS_MAX } from '../shedding/load-shedder.ts';
import { EventTurn } from './event-turn.ts';
import { LoopRounds } from './loop-rounds.ts';
import type { Clocks } from '../api/clocks.ts';
import { OPEN_REQUESTS_MAX } from './routing.ts';

/** Load shedding, and the turns that it measures. */
export interface Shedding {
  readonly shedder: LoadShedder;
  /** The turns of the node; each is measured. */
  readonly turn: EventTurn;
}

/** Creates both. */
export function newShedding(logger: Logger, { monotonicMillis }: Clocks): Shedding {
  const shedder = new LoadShedder({
    monotonicMillis,
    openMax: OPEN_REQUESTS_MAX,
    changed: (isShedding, report) =>
      logger.warn(report, isShedding ? 'overloaded: requests are refused' : 'no longer overloaded'),
  });
  const rounds = new LoopRounds({
    monotonicMillis,
    shortMillis: ROUND_MILLIS_MAX,
    rounds: (busyMillis, idleMillis) => shedder.rounds(busyMillis, idleMillis),
  });
  return { shedder, turn: new EventTurn(() => rounds.turn()) };
}
