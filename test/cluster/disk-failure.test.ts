/** Tests that a node stops at the first disk error, and that nothing acknowledged is lost. */
import { afterEach, describe, expect, it } from 'vitest';
import type { LogStore } from '../../raft/driver/store.ts';
import { eventually } from './harness.ts';
import { InProcessCluster } from './in-process.ts';

/** Longer than the test takes on any machine, so that grants count and stay remembered until its end. */
const LONG_MILLIS = 3_600_000;
const RULE = { id: 'default', limit: 100, windowMillis: LONG_MILLIS, clock: 'request' } as const;

/** A disk that works until the test makes it fail. Then it reports the error of LevelDB after a failed sync. */
function failingDisk(): { wrap: (store: LogStore) => LogStore; fail: () => void; failures: () => number } {
  let isFailing = false;
  let failures = 0;
  return {
    wrap: (store) => ({
      load: (group) => store.load(group),
      get hasGarbage() {
        return store.hasGarbage;
      },
      readSnapshotChunk: (group, index, chunk) => store.readSnapshotChunk(group, index, chunk),
      close: () => store.close(),
      write(writes, done) {
        if (!isFailing) {
          store.write(writes, done);
          return;
        }
        failures += 1;
        setImmediate(() => done(new Error('IO error: Input/output error')));
      },
    }),
    fail() {
      isFailing = true;
    },
    failures: () => failures,
  };
}

describe('a disk that fails', () => {
  let cluster: InProcessCluster;
  afterEach(async () => {
    await cluster.stop();
  });

  it('stops its node at the first error: the node sends nothing more, and no acknowledged grant is lost', async () => {
    cluster = await InProcessCluster.create({ rules: [RULE] });
    const disk = failingDisk();
    await cluster.startNode(1, disk.wrap);
    await cluster.startNode(2);
    await cluster.startNode(3);
    await cluster.ready();
    let granted = 0;
    for (let i = 0; i < 50; i += 1) {
      // On a busy machine an attempt without a timely answer may count. All attempts have one id, so they count once.
      const decision = await eventually('a decision', async () => {
        const answer = await cluster.allow((i % 3) + 1, { userId: 'ada', requestId: `r${i}` });
        return answer.kind === 'decision' ? answer.decision : undefined;
      });
      if (decision.allowed) granted += 1;
    }
    expect(granted).toBe(50);

    disk.fail();
    await eventually('the write error reaches the process', async () => {
      // Node 1 has to write these, as leader or as follower.
      await cluster.allow(2, { userId: `other-${Math.random()}` });
      return cluster.fatalErrors.length > 0 ? true : undefined;
    });
    expect(cluster.fatalErrors).toHaveLength(1);
    expect(cluster.fatalErrors[0]?.node).toBe(1);
    // Exactly one write failed: the node did not repeat it.
    expect(disk.failures()).toBe(1);

    // A real process ends now. Its peers continue with everything it acknowledged.
    await cluster.stopNode(1);
    await cluster.ready();
    let more = 0;
    let unknown = 0;
    await eventually('the limit is reached', async () => {
      const answer = await cluster.allow(2, { userId: 'ada' });
      if (answer.kind !== 'decision') unknown += 1;
      else if (answer.decision.allowed) more += 1;
      else return true;
      return undefined;
    });
    expect(granted + more).toBeLessThanOrEqual(100);
    expect(granted + more + unknown).toBeGreaterThanOrEqual(100);
  });
});
