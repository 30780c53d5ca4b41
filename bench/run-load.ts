/** Runs one load job in its own process, and reports when counting starts and ends. */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { LoadJob, LoadMessage, LoadResult } from './load/load-job.ts';
import type { Running } from './running.ts';

const PROGRAM = fileURLToPath(new URL('load/load-process.js', import.meta.url));

export interface LoadWatcher {
  /** Called when the load is warm and counting starts. */
  readonly measuring: () => void;
  /** Called when counting has ended. The load goes on for a moment. */
  readonly measured: () => void;
}

/** Runs the job. @throws Error with the failure of the load process */
export async function runLoad(job: LoadJob, running: Running, watcher: LoadWatcher): Promise<LoadResult> {
  const child = running.add(fork(PROGRAM));
  try {
    return await new Promise<LoadResult>((resolve, reject) => {
      child.on('message', (message: LoadMessage) => {
        switch (message.type) {
          case 'measuring':
            watcher.measuring();
            return;
          case 'measured':
            watcher.measured();
            resolve(message.result);
            return;
          case 'failed':
            reject(new Error(message.message));
            return;
        }
      });
      child.once('error', reject);
      child.once('exit', (code, signal) =>
        reject(new Error(`the load process ended before its result (${code ?? signal})`)),
      );
      child.send(job);
    });
  } finally {
    await running.stop(child);
  }
}
