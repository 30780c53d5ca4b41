/** The steps of a script. After each step the script waits for a condition. */
export type Condition = () => boolean;
export type Steps = Generator<Condition, void>;

const POLL_MILLIS = 1;

export function all(conditions: readonly Condition[]): Condition {
  return () => conditions.every((condition) => condition());
}

/** Starts each step as soon as the condition of the previous one holds. */
export function follow(
  steps: Steps,
  after: (delayMillis: number, run: () => void) => void,
  done: () => void,
): void {
  let step = steps.next();
  const poll = (): void => {
    while (step.done !== true && step.value()) step = steps.next();
    if (step.done === true) done();
    else after(POLL_MILLIS, poll);
  };
  after(0, poll);
}
