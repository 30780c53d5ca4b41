/** Compares two versions of one rule field by field: in words, and whether each change makes the rule stricter. */
import {
  type FailMode,
  type LimitWindow,
  type MeterName,
  partName,
  type RuleDefinition,
  type Scope,
  windowName,
} from './rule-definition.ts';
import {
  conditionsInWords,
  keyInWords,
  lengthInWords,
  limitsInWords,
  number,
  windowInWords,
} from './words.ts';

/** The effect of a change. `alike`: the same requests are granted as before. */
export type Binding = 'tighter' | 'looser' | 'differently' | 'alike';

/** One field that has changed. `before` and `after` are words for people. */
export interface FieldChange {
  readonly field: string;
  readonly before: string;
  readonly after: string;
  readonly binds: Binding;
}

/** The changed fields, in a fixed order. Empty if the two rules mean the same. */
export function fieldChanges(before: RuleDefinition, after: RuleDefinition): readonly FieldChange[] {
  const changes: FieldChange[] = [...windowChanges(before, after)];
  const compare = (field: string, was: string, is: string, binds: Binding): void => {
    if (was !== is) changes.push({ field, before: was, after: is, binds });
  };
  const bursts = burstOf(after) - burstOf(before);
  compare('match', matched(before.scope), matched(after.scope), 'differently');
  compare('key', keyInWords(before.scope), keyInWords(after.scope), keyBinding(before.scope, after.scope));
  compare('meter', before.meter, after.meter, meterBinding(before, after));
  compare('burst', burst(before), burst(after), bursts === 0 ? 'alike' : tighterIf(bursts < 0));
  compare('cost', cost(before), cost(after), costBinding(before, after));
  compare('clock', before.clock, after.clock, 'differently');
  compare(
    'failMode',
    before.failMode,
    after.failMode,
    tighterIf(OPENNESS[after.failMode] < OPENNESS[before.failMode]),
  );
  compare('enabled', yes(before.enabled), yes(after.enabled), tighterIf(after.enabled));
  compare('named', yes(before.named === true), yes(after.named === true), 'differently');
  compare('shadow', yes(before.shadow), yes(after.shadow), tighterIf(!after.shadow));
  compare(
    'post_paid',
    yes(before.postPaid === true),
    yes(after.postPaid === true),
    tighterIf(after.postPaid !== true),
  );
  compare('priority', number(before.priority), number(after.priority), 'differently');
  compare('group', before.group, after.group, 'differently');
  compare('name', before.name, after.name, 'differently');
  compare('replaces', listed(before.replaces), listed(after.replaces), replacing(before, after));
  compare('comment', before.comment ?? 'none', after.comment ?? 'none', 'alike');
  return changes;
}

/** How much is granted when the cluster cannot decide. */
const OPENNESS: Readonly<Record<FailMode, number>> = { closed: 0, local: 1, open: 2 };

function tighterIf(isTighter: boolean): Binding {
  return isTighter ? 'tighter' : 'looser';
}

function windowChanges(before: RuleDefinition, after: RuleDefinition): readonly FieldChange[] {
  if (before.unlimited !== after.unlimited) {
    const binds = after.unlimited ? 'looser' : 'tighter';
    return [{ field: 'unlimited', before: limitsInWords(before), after: limitsInWords(after), binds }];
  }
  const windows = [...before.windows, ...after.windows].toSorted((a, b) => a.windowMillis - b.windowMillis);
  return [...new Set(windows.map(windowName))].flatMap((name) => {
    const was = before.windows.find((window) => windowName(window) === name);
    const is = after.windows.find((window) => windowName(window) === name);
    if (was?.limit === is?.limit && was?.windowMillis === is?.windowMillis) return [];
    const of = (is ?? was)?.name ?? lengthInWords((is ?? was)?.windowMillis ?? 0);
    return {
      field: `limit ${of}`,
      before: was === undefined ? 'none' : windowInWords(was),
      after: is === undefined ? 'none' : windowInWords(is),
      binds: windowBinding(was, is),
    };
  });
}

/** A lower limit in the same or a longer time is tighter. */
function windowBinding(was: LimitWindow | undefined, is: LimitWindow | undefined): Binding {
  if (was === undefined || is === undefined) return tighterIf(was === undefined);
  if (is.limit <= was.limit && is.windowMillis >= was.windowMillis) return 'tighter';
  return is.limit >= was.limit && is.windowMillis <= was.windowMillis ? 'looser' : 'differently';
}

function matched(scope: Scope): string {
  return conditionsInWords(scope) || 'every request';
}

/** Counting by fewer descriptors means fewer budgets, which is tighter. */
function keyBinding(before: Scope, after: Scope): Binding {
  if (before.kind !== 'descriptors' || after.kind !== 'descriptors') return 'differently';
  const was = before.key.map(partName);
  const is = after.key.map(partName);
  if (is.every((name) => was.includes(name))) return 'tighter';
  if (was.every((name) => is.includes(name))) return 'looser';
  return 'differently';
}

/**
 * Meters that grant everything that a sliding log grants, and up to twice the limit within one window length. The
 * others are compared as `differently`: a sliding counter only estimates, so it may also deny what a log grants; a
 * leaky bucket may also have a queue, in a table of rules.
 */
const LOOSER_THAN_LOG: readonly MeterName[] = ['fixedWindow', 'tokenBucket'];

function meterBinding(before: RuleDefinition, after: RuleDefinition): Binding {
  if (before.burst !== undefined || after.burst !== undefined) return 'differently';
  if (before.meter === 'slidingLog' && LOOSER_THAN_LOG.includes(after.meter)) return 'looser';
  if (after.meter === 'slidingLog' && LOOSER_THAN_LOG.includes(before.meter)) return 'tighter';
  return 'differently';
}

function burst(rule: RuleDefinition): string {
  return rule.burst === undefined ? 'none' : number(rule.burst);
}

function burstOf({ burst, windows }: RuleDefinition): number {
  return burst ?? windows[0]?.limit ?? 0;
}

function cost({ cost }: RuleDefinition): string {
  const endpoints = cost.endpoints.map((one) => `${number(one.cost)} for ${one.endpoint}`);
  return [number(cost.otherwise), ...endpoints].join(', ');
}

function costBinding(before: RuleDefinition, after: RuleDefinition): Binding {
  if (before.cost.endpoints.length + after.cost.endpoints.length > 0) return 'differently';
  return after.cost.otherwise > before.cost.otherwise ? 'tighter' : 'looser';
}

function replacing(before: RuleDefinition, after: RuleDefinition): Binding {
  if (after.replaces.every((name) => before.replaces.includes(name))) return 'tighter';
  return before.replaces.every((name) => after.replaces.includes(name)) ? 'looser' : 'differently';
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.join(', ');
}

function yes(value: boolean): string {
  return value ? 'yes' : 'no';
}
