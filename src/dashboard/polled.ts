/** What is read again and again for as long as it is shown. */
import { useEffect, useState } from 'preact/hooks';

/**
 * Undefined until the first answer, and again when another thing is asked for. The next question waits for the answer.
 *
 * @param what stands for what `read` asks: when it changes, that is asked at once
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
