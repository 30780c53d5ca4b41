/** The steps of a script: after each there is something to wait for. */
export type Condition = () => boolean;
export type Steps = Generator<Condition, void>;

const POLL_MILLIS = 1;

export function all(conditions: readonly Condition[]): Condition {
  return () => conditions.every((condition) => condition());
}

/** Goes from one step to the next as soon as what it waits for is so. */
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
