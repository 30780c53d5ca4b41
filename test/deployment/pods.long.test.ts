/**
 * Runs the entry point of the image as three pods of a StatefulSet: they found a cluster and return at other addresses.
 * A pod that lost its volume must not pass for its former self.
 */
import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../cluster/harness.ts';
import { LIMIT, Pods } from './pods.ts';

const ALL = [0, 1, 2];

let pods: Pods;

beforeAll(async () => {
  pods = await Pods.create();
});
afterAll(() => pods.stopAll());

/** Grants of one user so far. Each has its own id, so a repetition is not charged. */
let grants = 0;

/** Remaining limit after one more grant. */
async function granted(ordinal: number): Promise<unknown> {
  grants += 1;
  const requestId = `request ${grants}`;
  return eventually(`pod ${ordinal} grants`, async () => {
    const { status, body } = await pods.ask(ordinal, '/v1/allow', { userId: 'ada', requestId });
    return status === 200 ? body['remaining'] : undefined;
  });
}

describe('three pods', () => {
  it('wait for each other, and then found one cluster', async () => {
    await pods.start(0, '127.0.1.2');
    await eventually('the first pod says which pod it waits for', () =>
      pods.pod(0).said().includes('waiting for node 2 at quorate-1.quorate.test') ? true : undefined,
    );
    expect(pods.recordOf(0)).not.toHaveProperty('founding');
    await pods.start(1, '127.0.1.3');
    await pods.start(2, '127.0.1.4');
    await pods.ready(ALL);
    const records = ALL.map((ordinal) => pods.recordOf(ordinal));
    expect(new Set(records.map(({ founding }) => JSON.stringify(founding))).size).toBe(1);
    expect(records[0]?.['founding']).toMatchObject({
      partitions: 6,
      replicas: 3,
      founders: records.map(({ nodeId: id, incarnation }) => ({ id, incarnation })),
    });
    for (const ordinal of ALL) expect(await granted(ordinal)).toBe(LIMIT - grants);
  });

  it('are known by their names, not by their addresses', async () => {
    const { body } = await pods.ask(0, '/v1/cluster');
    const nodes = body['nodes'] as readonly { readonly http: string }[];
    expect(nodes.map(({ http }) => http)).toEqual(
      ALL.map((ordinal) => `${pods.nameOf(ordinal)}:${pods.ports.http}`),
    );
  });

  it('keep deciding when one returns at another address', async () => {
    await pods.stop(1, 'SIGTERM');
    expect(pods.pod(1).child.exitCode).toBe(0);
    expect(await granted(0)).toBe(LIMIT - grants);
    await pods.start(1, '127.0.1.13');
    await pods.ready([1]);
    await eventually('all other pods are connected with it again', async () => {
      for (const ordinal of [0, 2]) {
        const { body } = await pods.ask(ordinal, '/v1/cluster');
        const nodes = body['nodes'] as readonly { readonly up: boolean }[];
        if (!nodes.every(({ up }) => up)) return undefined;
      }
      return true;
    });
    // Its vote counts: without it and the third pod there is no majority.
    await pods.stop(2, 'SIGKILL');
    expect(await granted(1)).toBe(LIMIT - grants);
    await pods.start(2, '127.0.1.14');
    await pods.ready([2]);
  });

  it('are joined by a fourth, which learns the cluster from them and is added', async () => {
    await pods.start(3, '127.0.1.5');
    await eventually('the fourth pod waits', async () =>
      (await pods.ask(3, '/readyz')).body['status'] === 'waiting to be added' ? true : undefined,
    );
    expect(pods.recordOf(3)['founding']).toEqual(pods.recordOf(0)['founding']);
    const { http, peer } = pods.ports;
    const [atHttp, atPeer] = [http, peer].map((port) => ({ host: pods.nameOf(3), port }));
    const change = { add: { id: 4, http: atHttp, peer: atPeer } };
    await eventually('the fourth pod is added', async () =>
      (await pods.ask(0, '/v1/cluster/nodes', change)).status === 200 ? true : undefined,
    );
    await pods.ready([3]);
    expect(await granted(3)).toBe(LIMIT - grants);
  });

  it('refuse an empty volume in place of a lost one', async () => {
    for (const ordinal of [0, 1]) {
      await pods.stop(ordinal, 'SIGKILL');
      await rm(pods.volumeOf(ordinal), { recursive: true });
      await pods.start(ordinal, `127.0.1.${22 + ordinal}`);
      const code = await pods.pod(ordinal).ended;
      expect([code, pods.pod(ordinal).said()]).toEqual([
        64,
        expect.stringContaining('has another volume than'),
      ]);
    }
  });
});

describe('a pod', () => {
  it('whose database is gone from its volume does not create another', async () => {
    await pods.stop(2, 'SIGKILL');
    await rm(`${pods.volumeOf(2)}/node-3`, { recursive: true });
    await rm(`${pods.volumeOf(2)}/cluster.json`);
    await pods.start(2, '127.0.1.24');
    expect([await pods.pod(2).ended, pods.pod(2).said()]).toEqual([64, expect.stringContaining('is gone')]);
  });

  it('with the volume of another pod does not start', async () => {
    pods.environment = { QUORATE_NODE_IDS: '2:1009' };
    await pods.start(2, '127.0.1.25');
    expect([await pods.pod(2).ended, pods.pod(2).said()]).toEqual([
      64,
      expect.stringContaining('is the volume of node 3'),
    ]);
  });
});
