/** The settings of drivers in tests: small numbers, so that tests are easy to read and histories short. */
import { RAFT_DEFAULTS } from '../../../raft/core-state.ts';
import { MULTI_RAFT_DEFAULTS, type MultiRaftOptions } from '../../../raft/driver/multi-raft.ts';

/** The group of tests that need only one. */
export const GROUP = 1;

export const TICK_MILLIS = 10;
export const HEARTBEAT_TICKS = 2;
export const ELECTION_TICKS = 10;

const NEVER = 1 << 30;

/** No snapshots and no balancing of leaders; tests that need them set their own options. */
export const DRIVER_OPTIONS: MultiRaftOptions = {
  ...MULTI_RAFT_DEFAULTS,
  raft: { ...RAFT_DEFAULTS, heartbeatTicks: HEARTBEAT_TICKS, electionTicks: ELECTION_TICKS },
  snapshotEveryBytes: NEVER,
  keepLogBytes: 0,
  snapshotWriteBytesMax: 300,
  streams: { outgoingMax: 4, silentTicksMax: 10 },
  balanceTicks: NEVER,
};

/** A snapshot every few entries, in several chunks and several writes. */
export const COMPACTING: MultiRaftOptions = {
  ...DRIVER_OPTIONS,
  snapshotEveryBytes: 1_000,
  keepLogBytes: 300,
  snapshotWriteBytesMax: 200,
  streams: { outgoingMax: 2, silentTicksMax: 10 },
};
