/** One worker of a pool: gets seeds and sends back their results. */
import { parentPort, workerData } from 'node:worker_threads';
import { loadHash32 } from '../../src/partition/hash.ts';
import { runSeed } from './run.ts';
import type { Theme } from './features.ts';

const theme = workerData as Theme;
const hash = await loadHash32();
parentPort?.on('message', (seed: number) => {
  void runSeed({ seed, hash, theme }).then((result) => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
    parentPort?.postMessage(result);
  });
});
