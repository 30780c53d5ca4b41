/** Closed-loop load on a limiter that runs in this process and stores its grants in PostgreSQL or etcd. */
import { type Limiter, workloadOf } from '../workloads.ts';
import type { LimiterJob, LoadResult } from './load-job.ts';
import { Measurement } from './measurement.ts';

/** Makes the limiter of a job. It imports only the client library that the job needs. */
export async function limiterOf({ limiter, addresses, connections }: LimiterJob): Promise<Limiter> {
  switch (limiter) {
    case 'etcd': {
      const { etcdLimiter } = await import('../peers/etcd-limiter.ts');
      return etcdLimiter(addresses);
    }
    case 'postgres': {
      const { postgresLimiter } = await import('../peers/postgres-limiter.ts');
      return postgresLimiter(addresses, connections);
    }
  }
}

/**
 * Runs the load.
 *
 * @param measuring called when the load is warm and counting begins
 * @throws what the limiter throws
 */
export async function limiterLoad(
  job: LimiterJob,
  limiter: Limiter,
  measuring: () => void,
): Promise<LoadResult> {
  const measurement = new Measurement({ ...job, measuring });
  const next = workloadOf(job.workload).chooser(job.seed);
  const counts = { grants: 0, denials: 0, errors: 0 };
  let isOver = false;
  const askOn = async (): Promise<void> => {
    while (!isOver) {
      const { key, rule } = next();
      const askedMillis = performance.now();
      if (await limiter(key, rule)) counts.grants += 1;
      else counts.denials += 1;
      measurement.latencies?.record(performance.now() - askedMillis);
    }
  };
  const clients = Array.from({ length: job.connections }, askOn);
  for (const client of clients) client.catch((error: Error) => measurement.fail(error));
  try {
    return await measurement.run(() => ({ ...counts }));
  } finally {
    isOver = true;
    await Promise.allSettled(clients);
  }
}
