/**
 * Runs seeds on several cores, each worker one seed after the other. Results arrive as they are ready, not in order.
 */
import { Worker } from 'node:worker_threads';
import { loadHash32 } from '../../src/partition/hash.ts';
import { runSeed, type RunResult } from './run.ts';
import type { Theme } from './features.ts';
import type { Say } from './story.ts';

export interface SeedPoolInit {
  readonly first: number;
  readonly seeds: number;
  readonly jobs: number;
  /** The theme of their worlds. */
  readonly theme: Theme;
  /** Gets the output line by line, which works only with a single worker. */
  readonly say?: Say | undefined;
  readonly finished: (result: RunResult) => void;
}

export async function runSeeds({ first, seeds, jobs, theme, say, finished }: SeedPoolInit): Promise<void> {
  if (say !== undefined || jobs <= 1 || seeds <= 1) {
    const hash = await loadHash32();
    for (let i = 0; i < seeds; i += 1) finished(await runSeed({ seed: first + i, hash, theme, say }));
    return;
  }
  let next = first;
  const takeSeed = (): number | undefined => (next < first + seeds ? next++ : undefined);
  const workers = Array.from({ length: Math.min(jobs, seeds) }, () => work(takeSeed, theme, finished));
  await Promise.all(workers);
}

function send(worker: Worker, seed: number): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
  worker.postMessage(seed);
}

/** Ends when there are no more seeds. A worker that dies ends the run, because its seed was not judged. */
async function work(
  takeSeed: () => number | undefined,
  theme: Theme,
  finished: (result: RunResult) => void,
): Promise<void> {
  const worker = new Worker(new URL('seed-worker.js', import.meta.url), { workerData: theme });
  try {
    await new Promise<void>((resolve, reject) => {
      let seed: number | undefined;
      const give = (): void => {
        seed = takeSeed();
        if (seed === undefined) resolve();
        else send(worker, seed);
      };
      worker.on('message', (result: RunResult) => {
        finished(result);
        give();
      });
      worker.on('error', (error) => reject(new Error(`seed ${seed} ended its worker`, { cause: error })));
      worker.on('exit', (code) => reject(new Error(`seed ${seed} ended its worker with ${code}`)));
      give();
    });
  } finally {
    worker.removeAllListeners('exit');
    await worker.terminate();
  }
}
