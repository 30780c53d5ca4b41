/**
 * The main program of a load process: does the one job it is told by its parent, reports, and ends. Load has a process of
 * its own so that its cost is known, and none of its garbage is collected in what it measures.
 */
import { httpLoad } from './http-load.ts';
import type { LoadJob, LoadMessage, LoadResult } from './load-job.ts';
import { openLoop } from './open-loop.ts';
import { respLoad } from './resp-load.ts';

function tell(message: LoadMessage): void {
  process.send?.(message);
}

function measuring(): void {
  tell({ type: 'measuring' });
}

async function run(job: LoadJob): Promise<LoadResult> {
  switch (job.kind) {
    case 'resp':
      return respLoad(job, measuring);
    case 'http':
      return httpLoad(job, measuring);
    case 'open-loop':
      return openLoop(job, measuring);
  }
}

process.once('message', (job: LoadJob) => {
  run(job)
    .then((result) => tell({ type: 'measured', result }))
    .catch((error: unknown) =>
      tell({ type: 'failed', message: error instanceof Error ? error.message : String(error) }),
    )
    .finally(() => process.disconnect());
});
// Its parent is gone: nobody waits for a result.
process.once('disconnect', () => process.exit());
