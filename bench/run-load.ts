/** Runs one load job in a process of its own, and says when it began to count. */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { LoadJob, LoadMessage, LoadResult } from './load/load-job.ts';
import type { Running } from './running.ts';

const PROGRAM = fileURLToPath(new URL('load/load-process.js', import.meta.url));

export interface LoadWatcher {
  /** The load is warm, and counting begins now. */
  readonly measuring: () => void;
  /** Counting has just ended; the load goes on for a moment. */
  readonly measured: () => void;
}

/** @throws Error with what went wrong there */
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
