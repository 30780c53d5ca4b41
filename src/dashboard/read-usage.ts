/** `GET /v1/usage` as views ask for it: with keys, if they are named to whoever looks. */
import type { UsageReport } from '../api/usage.ts';
import { ask, messageOf } from './session.ts';

export interface UsageRead {
  readonly report: UsageReport | undefined;
  /** Empty: none. */
  readonly failure: string;
}

/** @param top so many keys of each list; 0: none */
export async function readUsage({
  minutes,
  top,
}: {
  readonly minutes: number;
  readonly top: number;
}): Promise<UsageRead> {
  const query = `/v1/usage?minutes=${minutes}`;
  const asked = await ask(top === 0 ? query : `${query}&top=${top}`);
  // Keys are not named to everybody.
  const answer = asked.status === 403 && top > 0 ? await ask(query) : asked;
  if (answer.status === 200) return { report: answer.body as UsageReport, failure: '' };
  return { report: undefined, failure: messageOf(answer) };
}
