/** Draws where operators change keys, and which keys. They are few, since their records stay and take room. */
import { type DocumentSettings, windowIdOf } from './documents.ts';
import { idOfRule } from './draw-rules.ts';
import { meterKindOf } from './naive-meters.ts';
import type { Random } from './random.ts';
import type { Settings } from './settings.ts';

const KEYS = 3;
const MEANS_MILLIS = [60, 150, 400];
/** In a smaller state the operators' records would take the room of all others. */
const BYTES_MIN = 20_000;

export function withOperators(random: Random, drawn: Settings): Settings {
  const { tables, clients, documents } = drawn;
  const isSmall = tables.some(({ partitionBytesMax }) => partitionBytesMax < BYTES_MIN);
  if (isSmall) return drawn;
  const buckets = tables.flatMap(({ rules }) =>
    rules.filter((rule) => meterKindOf(rule) === 'bucket').map(({ id }) => id),
  );
  const keys = Array.from({ length: KEYS }, (_, i) => {
    // Half of all requests are for this user.
    if (i === 0) return 'user0';
    if (clients.eventUsers > 0 && random.chance(0.2)) return `event${random.below(clients.eventUsers)}`;
    const user = random.below(clients.users);
    return user === 1 ? 'mixed1' : `user${user}`;
  });
  return {
    ...drawn,
    operators: {
      meanMillis: random.pick(MEANS_MILLIS),
      keys,
      rules: [idOfRule(drawn, 'default'), idOfRule(drawn, 'cluster')],
      buckets,
      customers: documents === undefined ? [] : ['c0', 'c1', 'c2'],
      customerRules: windowsByCustomer(documents),
    },
  };
}

/** The ids of all windows of the rules that count by customer. */
function windowsByCustomer(documents: DocumentSettings | undefined): readonly string[] {
  const rules = (documents?.list ?? []).flatMap((document) => document.rules);
  const byCustomer = rules.filter(({ countsBy }) => countsBy === 'customer');
  return [...new Set(byCustomer.flatMap(({ id, windows }) => windows.map((one) => windowIdOf(id, one))))];
}
