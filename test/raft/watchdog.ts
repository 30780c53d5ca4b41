/** Fails a test in which a step of a core never ends; without it, the test would hang. */
import { RaftLog } from '../../raft/log.ts';
import type { LogPosition } from '../../raft/types.ts';

// Every loop of the core reads the log.
const LOOKUPS_MAX = 1_000_000;
let lookups = 0;
const descriptor = Object.getOwnPropertyDescriptor(RaftLog.prototype, 'positionAt');
const original = descriptor?.value as RaftLog['positionAt'];
RaftLog.prototype.positionAt = function positionAt(this: RaftLog, index: number): LogPosition | undefined {
  lookups += 1;
  if (lookups > LOOKUPS_MAX) throw new Error('a step of the core does not end');
  return original.call(this, index);
};

export const watchdog = {
  /** Call before every step. */
  feed(): void {
    lookups = 0;
  },
};
