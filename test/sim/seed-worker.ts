/** One worker of a pool: is given seeds, and answers with what became of each. */
import { parentPort } from 'node:worker_threads';
import { loadHash32 } from '../../src/partition/hash.ts';
import { runSeed } from './run.ts';

const hash = await loadHash32();
parentPort?.on('message', (seed: number) => {
  void runSeed({ seed, hash }).then((result) => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
    parentPort?.postMessage(result);
  });
});
