/** Load shedding of a node: its event loop is what is watched, and its log is told. Wires; decides nothing. */
import type { Logger } from 'pino';
import { LoadShedder, ROUND_MILLIS_MAX } from '../shedding/load-shedder.ts';
import { EventTurn } from './event-turn.ts';
import { LoopRounds } from './loop-rounds.ts';
import type { Clocks } from './node-core-init.ts';
import { OPEN_REQUESTS_MAX } from './routing.ts';

export interface Shedding {
  readonly shedder: LoadShedder;
  /** The turns that it goes by. */
  readonly turn: EventTurn;
}

export function newShedding(logger: Logger, { monotonicMillis }: Clocks): Shedding {
  const shedder = new LoadShedder({
    monotonicMillis,
    openMax: OPEN_REQUESTS_MAX,
    changed: (isShedding, report) =>
      logger.warn(report, isShedding ? 'overloaded: requests are refused' : 'overloaded no more'),
  });
  const rounds = new LoopRounds({
    monotonicMillis,
    shortMillis: ROUND_MILLIS_MAX,
    rounds: (busyMillis, idleMillis) => shedder.rounds(busyMillis, idleMillis),
  });
  return { shedder, turn: new EventTurn(() => rounds.turn()) };
}
