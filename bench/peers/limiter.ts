/** What the peers that are measured have in common. */
import type { LoadRuleId } from '../workloads.ts';

/** Whether a request is granted. */
export type Limiter = (key: string, rule: LoadRuleId) => Promise<boolean> | boolean;
