/** How views read data: a hook that repeats a read for as long as the component is shown, and the read of the usage. */
import type { UsageReport } from '../api/usage.ts';
import { ask, messageOf } from './session.ts';
import { useEffect, useState } from 'preact/hooks';

/**
 * Polls `read`. Undefined until the first answer, and again after `what` changes. The next read starts only after the
 * answer.
 *
 * @param what identifies what `read` asks for; a change starts a new read at once
 */
export function usePolled<T>(what: string, read: () => Promise<T>, againMillis: number): T | undefined {
  const [answer, setAnswer] = useState<{ readonly what: string; readonly value: T }>();
  useEffect(() => {
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async (): Promise<void> => {
      const value = await read();
      if (isOver) return;
      setAnswer({ what, value });
      timer = setTimeout(() => void ask(), againMillis);
    };
    void ask();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [what]);
  return answer?.what === what ? answer.value : undefined;
}

/** A usage report, or the reason why there is none. */
export interface UsageRead {
  readonly report: UsageReport | undefined;
  /** Empty if the read succeeded. */
  readonly failure: string;
}

/**
 * Reads the usage of the last minutes with `GET /v1/usage`, with keys if this viewer may see them.
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
