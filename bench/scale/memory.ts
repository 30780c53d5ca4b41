/** Measures the memory of a key and of a grant in the state of a partition, by how much the process grows. */
import { AllowBatchBuilder } from '../../src/limiter/log/batch-builder.ts';
import { decodeCommand } from '../../src/limiter/log/command.ts';
import { PARTITION_BYTES_MAX, validateRuleTable } from '../../src/limiter/rules.ts';
import { LimiterStateMachine } from '../../src/limiter/state-machine.ts';

const REQUESTS_PER_ENTRY = 256;
const START_MILLIS = 1_700_000_000_000;
const RULES = validateRuleTable({
  version: 1,
  partitionBytesMax: PARTITION_BYTES_MAX,
  rules: [{ id: 'default', limit: 1_000, windowMillis: 3_600_000, clock: 'cluster' }],
});

class Filled {
  readonly machine = new LimiterStateMachine();
  #index = 1;

  constructor() {
    this.machine.apply({ type: 'rules', table: RULES }, { index: 1, term: 1, timeMillis: START_MILLIS });
  }

  /** Grants one request to each user, with a millisecond between entries. */
  round(users: number): void {
    for (let from = 0; from < users; from += REQUESTS_PER_ENTRY) {
      const builder = new AllowBatchBuilder();
      for (let user = from; user < Math.min(users, from + REQUESTS_PER_ENTRY); user += 1)
        builder.add({ userId: nameOf(user) });
      this.#index += 1;
      this.machine.apply(decodeCommand(builder.take()), {
        index: this.#index,
        term: 1,
        timeMillis: START_MILLIS + this.#index,
      });
    }
  }
}

function nameOf(user: number): string {
  return `user-${user}`;
}

function residentBytes(): number {
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage.rss();
}

export function measureMemory(users: number, grants: number): void {
  let nameBytes = 0;
  for (let user = 0; user < users; user += 1) nameBytes += Buffer.byteLength(nameOf(user));
  const before = residentBytes();
  const filled = new Filled();
  filled.round(users);
  const afterOne = residentBytes();
  for (let round = 1; round < grants; round += 1) filled.round(users);
  const after = residentBytes();
  const stats = filled.machine.stats();
  const perKey = (afterOne - before - nameBytes) / users;
  const perGrant = (after - afterOne) / (users * (grants - 1));
  console.log(`${stats.keys} keys, ${stats.grants} grants; names ${(nameBytes / users).toFixed(1)} bytes`);
  console.log(`a key with one grant takes ${perKey.toFixed(0)} bytes beside its name`);
  console.log(`each further grant takes ${perGrant.toFixed(1)} bytes`);
  console.log(`a key with ${grants} takes ${((after - before) / users).toFixed(0)} bytes in all`);
  console.log(
    `the process has ${(after / 2 ** 20).toFixed(0)} MiB, ${(before / 2 ** 20).toFixed(0)} of them before`,
  );
}
