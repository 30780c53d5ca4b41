/** Tests that a new process warms up with its own requests before it reports that it is ready. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { TestCluster } from './harness.ts';

const RULE = { id: 'default', limit: 100, windowMillis: 60_000, clock: 'request' } as const;

it('a cluster that is ready is warm', async () => {
  const cluster = await TestCluster.start({ rules: [RULE], partitions: 1 });
  try {
    const logs = cluster.ids.map(async (id) =>
      readFile(join(cluster.directory, 'logs', `node-${id}.log`), 'utf8'),
    );
    for (const log of await Promise.all(logs)) {
      const line = log.split('\n').find((each) => each.includes('warmed up')) ?? '{}';
      expect(JSON.parse(line)).toMatchObject({ granted: expect.any(Number), millis: expect.any(Number) });
    }
  } finally {
    await cluster.stop();
  }
});
