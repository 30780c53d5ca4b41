/** A hook that repeats a read for as long as the component is shown. */
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
