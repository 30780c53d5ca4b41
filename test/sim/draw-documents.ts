/** The rule documents that a seed's cluster goes through, and the tables that must follow from them. */
import type { Rule } from '../../src/api/rule.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import {
  type DocumentRule,
  type DocumentWindow,
  inOrder,
  type RulesDocument,
  windowIdOf,
} from './documents.ts';
import type { Random } from './random.ts';
import type { Settings } from './settings.ts';

/** After the first table, which comes from the files. */
const DOCUMENTS = 5;
const CHANGE_MEANS_MILLIS = [1_000, 2_500];
const WINDOW_MILLIS_MAX = 10_000;

/** All rules that documents may have; each document leaves some of them out. */
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
  const named = plain(first);
  // The table of a new cluster has no windows of rules.
  const tables: RuleTable[] = [{ ...first, rules: named.map(withoutRule) }];
  const documents: RulesDocument[] = [created(tables[0])];
  let kinds = KINDS.map((kind) => ({ kind, windows: drawWindows(random), isIn: random.chance(0.8) }));
  for (let i = 0; i < DOCUMENTS; i += 1) {
    const version = tables.length + 1;
    const known = drawn.tables[i % drawn.tables.length] ?? base;
    const options = { ...known, version, rules: named };
    const rules = kinds.filter(({ isIn }) => isIn).map(({ kind, windows }) => ({ ...kind, windows }));
    // Not drawn, so that the earlier draws stay the same for each seed.
    const deniesUnmatched = version % 2 === 0;
    const document = { version, rules, deniesUnmatched, text: textOf(options.rules, rules, deniesUnmatched) };
    documents.push(document);
    tables.push({ ...options, rules: [...options.rules, ...rules.flatMap(limiterRules)] });
    kinds = kinds.map((one) => ({
      kind: one.kind,
      windows: changedWindows(random, one.windows),
      isIn: random.chance(0.2) ? !one.isIn : one.isIn,
    }));
  }
  const changeMeanMillis = random.pick(CHANGE_MEANS_MILLIS);
  const fraction = random.pick([0.5, 1]);
  return {
    ...drawn,
    tables,
    // Files would bring tables that belong to no document.
    faults: drawn.faults.filter((fault) => fault !== 'newRules'),
    config: { ...drawn.config, rules: tables[0] ?? base },
    documents: { list: documents, changeMeanMillis, clientMeanMillis: drawn.clients.meanMillis / fraction },
  };
}

function withoutRule({ of: _of, ...window }: Rule): Rule {
  return window;
}

/** The initial table of the cluster: its first rule is for all users, the others are requested by name. */
function created(table: RuleTable | undefined): RulesDocument {
  const [rule] = table?.rules ?? [];
  if (rule === undefined) throw new Error('there is no first rule');
  const { id, limit, windowMillis } = rule;
  const first: DocumentRule = {
    id,
    countsBy: 'user',
    cost: 1,
    isShadow: false,
    windows: [{ name: '', limit, windowMillis }],
  };
  return { version: 1, rules: [first], deniesUnmatched: false, text: '' };
}

/**
 * The two rules that other users request by the ids of their windows. They use every log, and are the same in all
 * documents.
 */
function plain({ rules }: RuleTable): readonly Rule[] {
  return ['default', 'cluster'].flatMap((id) => {
    const rule = rules.find((one) => one.id === id);
    if (rule === undefined) return [];
    const { limit, windowMillis, clock } = rule;
    const windowId = windowIdOf(id, { limit, windowMillis });
    return [{ id: windowId, of: id, limit, windowMillis, clock, meter: 'slidingLog' as const }];
  });
}

function drawWindows(random: Random): DocumentRule['windows'] {
  const windowMillis = random.pick([250, 1_000, 5_000]);
  const first = { limit: random.pick([1, 2, 3, 10, 30]), windowMillis };
  if (random.chance(0.7)) return [first];
  return [first, longer(first)];
}

function longer({ limit, windowMillis }: DocumentWindow): DocumentWindow {
  return { limit: 2 * limit, windowMillis: Math.min(2 * WINDOW_MILLIS_MAX, 4 * windowMillis) };
}

/** Limits are lowered or raised. Sometimes a window is added, removed or moved, or a named one gets another length. */
function changedWindows(random: Random, windows: DocumentRule['windows']): DocumentRule['windows'] {
  const kept = windows.map((window) => changed(random, window));
  const [first, ...others] = random.chance(0.3) ? kept.toReversed() : kept;
  if (first === undefined) return kept;
  if (others.length > 0 && random.chance(0.3)) return others;
  if (others.length > 1 || !random.chance(0.4)) return [first, ...others];
  const { limit, windowMillis } = first;
  const added = random.pick<DocumentWindow>([
    longer(first),
    { limit: Math.max(1, Math.floor(limit / 2)), windowMillis: Math.max(50, Math.floor(windowMillis / 5)) },
    { name: 'own', limit, windowMillis },
  ]);
  const isKnown = kept.some((window) => windowIdOf('', window) === windowIdOf('', added));
  return isKnown ? kept : [added, ...kept];
}

function changed(random: Random, { name, limit, windowMillis }: DocumentWindow): DocumentWindow {
  return {
    ...(name !== undefined && { name }),
    limit: random.chance(0.5) ? limit : Math.max(1, Math.floor(limit * random.pick([0.5, 2, 3]))),
    windowMillis: name === undefined || random.chance(0.7) ? windowMillis : random.pick([250, 2_000, 9_000]),
  };
}

function limiterRules({ id, windows }: DocumentRule): readonly Rule[] {
  return inOrder(windows).map((window) => ({
    id: windowIdOf(id, window),
    of: id,
    limit: window.limit,
    windowMillis: window.windowMillis,
    clock: 'cluster',
    meter: 'slidingLog',
  }));
}

function textOf(named: readonly Rule[], rules: readonly DocumentRule[], deniesUnmatched: boolean): string {
  // No request has this descriptor.
  const before = named.map(({ of: id, limit, windowMillis, clock }) =>
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
  return [...(deniesUnmatched ? ['unmatched: deny'] : []), 'rules:', ...before, ...behind, ''].join('\n');
}

/** JSON is YAML. */
function lineOf(rule: Readonly<Record<string, unknown>>): string {
  return `  - ${JSON.stringify(rule)}`;
}
