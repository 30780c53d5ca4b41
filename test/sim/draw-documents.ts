/** The documents of rules that a seed's cluster goes through, and the tables that must follow from them. */
import type { Rule } from '../../src/api/rule.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import type { DocumentRule, RulesDocument } from './documents.ts';
import type { Random } from './random.ts';
import type { Settings } from './settings.ts';

/** Behind the first table, which comes from the files. */
const DOCUMENTS = 5;
const CHANGE_MEANS_MILLIS = [1_000, 2_500];
const WINDOW_MILLIS_MAX = 10_000;

/** What rules there may be; a document leaves some of them out. */
const KINDS: readonly Omit<DocumentRule, 'windows'>[] = [
  { id: 'perUser', countsBy: 'user', cost: 1, isShadow: false },
  { id: 'perAddress', countsBy: 'ip', cost: 1, isShadow: false },
  { id: 'dear', match: '/dear', countsBy: 'endpoint', cost: 2, isShadow: false },
  { id: 'all', cost: 1, isShadow: false },
  { id: 'perCustomer', countsBy: 'customer', cost: 1, isShadow: false },
  { id: 'gold', tier: 'gold', countsBy: 'customer', cost: 1, isShadow: false },
  { id: 'free', tier: 'free', countsBy: 'ip', cost: 1, isShadow: false },
  { id: 'trial', countsBy: 'ip', cost: 1, isShadow: true },
];

export function withDocuments(random: Random, drawn: Settings): Settings {
  const base: RuleTable = { ...drawn.config.rules, version: 1 };
  const [first = base] = drawn.tables;
  const tables: RuleTable[] = [{ ...first, rules: plain(first) }];
  const documents: RulesDocument[] = [created(tables[0])];
  let kinds = KINDS.map((kind) => ({ kind, windows: drawWindows(random), isIn: random.chance(0.8) }));
  for (let i = 0; i < DOCUMENTS; i += 1) {
    const version = tables.length + 1;
    const known = drawn.tables[i % drawn.tables.length] ?? base;
    const options = { ...known, version, rules: plain(first) };
    const rules = kinds.filter(({ isIn }) => isIn).map(({ kind, windows }) => ({ ...kind, windows }));
    const document = { version, rules, text: textOf(options.rules, rules) };
    documents.push(document);
    tables.push({ ...options, rules: [...options.rules, ...rules.flatMap(limiterRules)] });
    kinds = kinds.map((one) => ({
      kind: one.kind,
      windows: one.windows.map((window) => changed(random, window)),
      isIn: random.chance(0.2) ? !one.isIn : one.isIn,
    }));
  }
  const changeMeanMillis = random.pick(CHANGE_MEANS_MILLIS);
  const share = random.pick([0.5, 1]);
  return {
    ...drawn,
    tables,
    // Files would bring tables that no document is known of.
    faults: drawn.faults.filter((fault) => fault !== 'newRules'),
    config: { ...drawn.config, rules: tables[0] ?? base },
    documents: { list: documents, changeMeanMillis, clientMeanMillis: drawn.clients.meanMillis / share },
  };
}

/** What the cluster is created with is a table: its first rule is for all users, the others are asked by name. */
function created(table: RuleTable | undefined): RulesDocument {
  const [rule] = table?.rules ?? [];
  if (rule === undefined) throw new Error('there is no first rule');
  const { id, limit, windowMillis } = rule;
  const first: DocumentRule = {
    id,
    countsBy: 'user',
    cost: 1,
    isShadow: false,
    windows: [{ limit, windowMillis }],
  };
  return { version: 1, rules: [first], text: '' };
}

/** Both rules that the other users ask for by name. They count by every log, and are the same in all documents. */
function plain({ rules }: RuleTable): readonly Rule[] {
  return ['default', 'cluster'].flatMap((id) => {
    const rule = rules.find((one) => one.id === id);
    if (rule === undefined) return [];
    const { limit, windowMillis, clock } = rule;
    return [{ id, limit, windowMillis, clock, meter: 'slidingLog' as const }];
  });
}

function drawWindows(random: Random): DocumentRule['windows'] {
  const windowMillis = random.pick([250, 1_000, 5_000]);
  const first = { limit: random.pick([1, 2, 3, 10, 30]), windowMillis };
  if (random.chance(0.7)) return [first];
  return [first, { limit: 2 * first.limit, windowMillis: 4 * windowMillis }];
}

/** Lowered or raised; now and then another window. Which of two is the shorter stays. */
function changed(
  random: Random,
  { limit, windowMillis }: DocumentRule['windows'][number],
): DocumentRule['windows'][number] {
  return {
    limit: random.chance(0.5) ? limit : Math.max(1, Math.floor(limit * random.pick([0.5, 2, 3]))),
    windowMillis: Math.min(2 * WINDOW_MILLIS_MAX, windowMillis),
  };
}

function limiterRules({ id, windows }: DocumentRule): readonly Rule[] {
  return windows.map(({ limit, windowMillis }, i) => ({
    id: i === 0 ? id : `${id}/${i + 1}`,
    limit,
    windowMillis,
    clock: 'cluster',
    meter: 'slidingLog',
  }));
}

function textOf(named: readonly Rule[], rules: readonly DocumentRule[]): string {
  // No request has this descriptor.
  const before = named.map(({ id, limit, windowMillis, clock }) =>
    lineOf({ id, clock, key: 'nobody', group: id, windows: [{ limit, windowMillis }] }),
  );
  const behind = rules.map(({ id, match, tier, countsBy, cost, isShadow, windows }) =>
    lineOf({
      id,
      clock: 'cluster',
      group: id,
      ...(match !== undefined && { match: { endpoint: match } }),
      ...(tier !== undefined && { match: { tier } }),
      ...(countsBy !== undefined && { key: countsBy }),
      ...(cost > 1 && { cost }),
      ...(isShadow && { shadow: true }),
      windows,
    }),
  );
  return ['rules:', ...before, ...behind, ''].join('\n');
}

/** JSON is YAML. */
function lineOf(rule: Readonly<Record<string, unknown>>): string {
  return `  - ${JSON.stringify(rule)}`;
}
