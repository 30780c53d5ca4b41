/** The interface of the limiters that Quorate is compared with. */
import type { LoadRuleId } from '../workloads.ts';

/** Decides whether to grant a request. */
export type Limiter = (key: string, rule: LoadRuleId) => Promise<boolean> | boolean;
