/** The placement on disk of a group that was there from the start and never moved. */
import type { StoredGroup } from '../../raft/types.ts';

export const NEVER_PLACED: Pick<StoredGroup, 'placement' | 'removedAt' | 'removed'> = {
  placement: 0,
  removedAt: 0,
  removed: false,
};
