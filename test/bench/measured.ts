/** Repeats measurements that are so short that a busy machine may do nothing meanwhile. */
import type { LoadResult } from '../../bench/load/load-job.ts';
import { eventually } from '../cluster/harness.ts';

/** Measures again if nothing was counted because the machine was busy. */
export async function measuredSomething(measure: () => Promise<LoadResult>): Promise<LoadResult> {
  return eventually('something was measured', async () => {
    const measured = await measure();
    const { grants, denials, errors } = measured;
    return (grants > 0 && denials > 0) || errors > 0 ? measured : undefined;
  });
}
