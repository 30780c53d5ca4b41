/** Tests what `npm start` refuses before it changes anything. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { prepare } from '../../cluster/prepare.ts';
import {
  createCluster,
  LOCAL_DEFAULTS,
  localConfig,
  readCluster,
} from '../../src/config/cluster-directory.ts';
import type { ClusterConfig } from '../../src/config/config.ts';
import { lockDirectory } from '../../storage/lock.ts';
import { eventually, freeBasePort } from './harness.ts';

/** How long the script waits for the answer of a node. */
const ANSWER_MILLIS_MAX = 1_000;

let directory: string;
let config: ClusterConfig;
let server: Server;
beforeEach(async () => {
  const basePort = await freeBasePort();
  directory = join(await mkdtemp(join(tmpdir(), 'quorate-prepare-')), 'data');
  config = localConfig({ ...LOCAL_DEFAULTS, nodes: 3, basePort });
  await createCluster(directory, config);
  // A node that answers in a form that this version does not know.
  server = createServer((_, response) => response.end('{"of":"another version"}'));
  await new Promise<void>((resolve) => {
    server.listen(config.nodes[0]?.http.port, '127.0.0.1', resolve);
  });
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => {
    server.close(resolve);
  });
  await rm(join(directory, '..'), { recursive: true });
});

it('a cluster is not deleted if one of its nodes answers, in any form, even if the new cluster uses other ports', async () => {
  const before = await readCluster(directory);
  const starting = await eventually('the node answers in time', async () => {
    const basePort = await freeBasePort();
    const startedAt = performance.now();
    const [reported] = await Promise.allSettled([prepare({ data: directory, fresh: true, basePort })]);
    if (reported.status === 'rejected' || performance.now() - startedAt < ANSWER_MILLIS_MAX) return reported;
    // This process was paused, and the node with it, so no answer came in time. The test repeats with the same cluster.
    await rm(directory, { recursive: true });
    await createCluster(directory, config);
    return undefined;
  });
  expect(starting).toMatchObject({ status: 'rejected', reason: { name: 'AlreadyRunningError' } });
  expect(await readCluster(directory)).toEqual(before);
});

it('a cluster is not deleted if one of its nodes is paused: its later grants would be on no disk', async () => {
  await new Promise((resolve) => {
    server.close(resolve);
  });
  const running = await lockDirectory(join(directory, 'node-2'));
  const before = await readdir(directory, { recursive: true });
  const starting = prepare({ data: directory, fresh: true, basePort: await freeBasePort() });
  await expect(starting).rejects.toMatchObject({ name: 'StoreLockedError' });
  expect(await readdir(directory, { recursive: true })).toEqual(before);
  await running.release();
});
