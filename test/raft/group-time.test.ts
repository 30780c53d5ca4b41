/**
 * The time that a follower uses as group time: that of its last entry, and its leader's only if that entry is the
 * leader's own.
 */
import { describe, expect, it } from 'vitest';
import { appendOf } from './messages.ts';
import { Network } from './network.ts';
import { storedLog } from './stored-log.ts';

/** Node 1 holds entries of terms 1 and 1: its group time begins at 20 ms. */
function follower(): Network {
  return new Network({ nodes: 3, stored: new Map([[1, storedLog([1, 1])]]) });
}

function timeOf(network: Network): number {
  return network.node(1).clock.nowMillis();
}

describe('the group time of a follower', () => {
  it("is not the leader's if the follower has none of the leader's entries", () => {
    const network = follower();
    expect(timeOf(network)).toBe(20);
    const empty = appendOf({ term: 2, prev: [2, 1], terms: [] });
    network.act(1, (core) => core.step({ ...empty, timeMillis: 9_000 }));
    expect(timeOf(network)).toBe(20);
    const { entries } = appendOf({ term: 2, prev: [2, 1], terms: [2] });
    network.act(1, (core) => core.step({ ...empty, entries, timeMillis: 9_000 }));
    expect(timeOf(network)).toBe(9_000);
  });

  it('is that of the last entry if the leader sends entries of its predecessors', () => {
    const network = follower();
    network.now += 5_000;
    expect(timeOf(network)).toBe(5_020);
    // The leader of term 3 has no entries of its own to send yet.
    const older = appendOf({ term: 3, prev: [2, 1], terms: [2, 2] });
    network.act(1, (core) => core.step({ ...older, timeMillis: 9_000 }));
    expect(timeOf(network)).toBe(40);
  });
});
