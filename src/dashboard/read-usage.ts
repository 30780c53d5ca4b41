/** Reads `GET /v1/usage` for the views, with keys if this viewer may see them. */
import type { UsageReport } from '../api/usage.ts';
import { ask, messageOf } from './session.ts';

/** A usage report, or the reason why there is none. */
export interface UsageRead {
  readonly report: UsageReport | undefined;
  /** Empty if the read succeeded. */
  readonly failure: string;
}

/**
 * Reads the usage of the last minutes.
 *
 * @param top keys wanted in each list; 0 for none
 */
export async function readUsage({
  minutes,
  top,
}: {
  readonly minutes: number;
  readonly top: number;
}): Promise<UsageRead> {
  const query = `/v1/usage?minutes=${minutes}`;
  const asked = await ask(top === 0 ? query : `${query}&top=${top}`);
  // 403: this viewer may not see keys, so read again without them.
  const answer = asked.status === 403 && top > 0 ? await ask(query) : asked;
  if (answer.status === 200) return { report: answer.body as UsageReport, failure: '' };
  return { report: undefined, failure: messageOf(answer) };
}
