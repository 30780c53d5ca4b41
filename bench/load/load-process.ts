/**
 * Main program of a load process. It receives one job from its parent, runs it, reports the result and ends. Load runs
 * in its own process so that its cost can be measured apart, and its garbage collection does not disturb the server.
 */
import { httpLoad } from './http-load.ts';
import { httpOpenLoop } from './http-open-loop.ts';
import { limiterLoad, limiterOf } from './limiter-load.ts';
import type { LoadJob, LoadMessage, LoadResult } from './load-job.ts';
import { openLoop } from './open-loop.ts';
import { respOpenLoop } from './resp-open-loop.ts';
import { respLoad } from './resp-load.ts';

function report(message: LoadMessage, reported: () => void = () => undefined): void {
  process.send?.(message, undefined, undefined, reported);
}

/** Sends the last message and then ends this process. */
function conclude(message: LoadMessage): void {
  report(message, () => process.disconnect());
}

function measuring(): void {
  report({ type: 'measuring' });
}

async function run(job: LoadJob): Promise<LoadResult> {
  switch (job.kind) {
    case 'resp':
      return respLoad(job, measuring);
    case 'limiter':
      return limiterLoad(job, await limiterOf(job), measuring);
    case 'http':
      return httpLoad(job, measuring);
    case 'open-loop':
      return openLoop(job, measuring);
    case 'http-open-loop':
      return httpOpenLoop(job, measuring);
    case 'resp-open-loop':
      return respOpenLoop(job, measuring);
  }
}

process.once('message', (job: LoadJob) => {
  run(job)
    .then((result) => conclude({ type: 'measured', result }))
    .catch((error: unknown) =>
      conclude({ type: 'failed', message: error instanceof Error ? error.message : String(error) }),
    );
});
// The parent is gone, so nobody waits for the result.
process.once('disconnect', () => process.exit());
