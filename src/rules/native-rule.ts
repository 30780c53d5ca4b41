/**
 * Reads one rule of the list `rules` in rules.yaml. How several rules relate to each other is checked in
 * together.ts.
 */
import { LIMIT_MAX, limitMaxOf, RULE_CLOCKS, WINDOW_MILLIS_MAX } from '../api/rule.ts';
import { isStatedId } from '../api/stated-rule.ts';
import { UNMATCHED } from '../api/refusals.ts';
import { Fields, mapOf, type TextAt, textOf } from './fields.ts';
import { type Findings, type Offset, quoted } from './mistakes.ts';
import { compareText, readConditions, readCost, readKey } from './native-scope.ts';
import {
  COMMENT_BYTES_MAX,
  DEFINITION_ID_BYTES_MAX,
  FAIL_MODES,
  isPeriod,
  keyKind,
  type LimitWindow,
  type MeterName,
  METERS,
  METERS_WITH_BURST,
  periodOf,
  PRIORITY_MAX,
  REPLACES_MAX,
  type RuleDefinition,
  UNIT_MILLIS,
  WINDOW_NAME_BYTES_MAX,
  windowName,
  windowRuleId,
  WINDOWS_MAX,
} from './rule-definition.ts';
import type { Located } from './together.ts';
import { lengthInWords } from './words.ts';
import type { Tree } from './yaml-tree.ts';

const RULE_FIELDS = [
  'id',
  'match',
  'key',
  'windows',
  'meter',
  'burst',
  'cost',
  'clock',
  'failMode',
  'enabled',
  'priority',
  'group',
  'shadow',
  'named',
  'unlimited',
  'replaces',
  'comment',
];
/** The names of the units of time, such as `minute`. */
export const UNITS = Object.keys(UNIT_MILLIS) as (keyof typeof UNIT_MILLIS)[];

/**
 * Reads a rule. Undefined if it has no id; all other mistakes are reported, and the rule is read as far as
 * possible.
 */
export function readNativeRule(tree: Tree, findings: Findings): Located | undefined {
  const map = mapOf(tree, 'a rule', findings);
  if (map === undefined) return undefined;
  const fields = new Fields(map, RULE_FIELDS, findings);
  const id = fields.textAt('id', DEFINITION_ID_BYTES_MAX);
  if (!fields.has('id')) findings.mistake(map.at, 'a rule needs an id');
  if (id !== undefined) checkId(id, findings);
  const key = readKey(fields, findings);
  const unlimited = fields.flag('unlimited');
  const meter = fields.choice('meter', METERS) ?? 'slidingLog';
  const replaces = readReplaces(fields, findings);
  const comment = fields.text('comment', COMMENT_BYTES_MAX);
  const definition: RuleDefinition = {
    id: id?.text ?? '',
    name: id?.text ?? '',
    scope: { kind: 'descriptors', conditions: readConditions(fields, findings), key },
    group: fields.text('group', DEFINITION_ID_BYTES_MAX) ?? keyKind(key),
    priority: fields.integer('priority', -PRIORITY_MAX, PRIORITY_MAX) ?? 0,
    windows: readWindows(fields, { id: id?.text ?? '', meter, unlimited }, findings),
    meter,
    ...readBurst(fields, meter, unlimited, findings),
    cost: readCost(fields, findings),
    clock: fields.choice('clock', RULE_CLOCKS) ?? 'request',
    failMode: fields.choice('failMode', FAIL_MODES) ?? 'closed',
    enabled: !fields.has('enabled') || fields.flag('enabled'),
    shadow: fields.flag('shadow'),
    ...(fields.flag('named') && { named: true as const }),
    unlimited,
    replaces: replaces.map(({ text }) => text),
    ...(comment !== undefined && { comment }),
  };
  return id && { definition, at: id.at, replacesAt: replaces.map(({ at }) => at) };
}

/** Reports ids that are reserved. */
export function checkId({ text, at }: TextAt, findings: Findings): void {
  if (text === UNMATCHED) {
    const instead = `write ${UNMATCHED}: deny at the top of the document, or choose another id`;
    findings.mistake(at, `${quoted(text)} is reserved for requests that no rule matches; ${instead}`);
  }
  if (!isStatedId(text)) return;
  findings.mistake(
    at,
    `${quoted(text)} has the form of a limit that a request states itself; choose another id`,
  );
}

/** Reads `windows` and sorts them, shortest first. Empty only if the rule is unlimited. */
function readWindows(
  fields: Fields,
  { id, meter, unlimited }: Pick<RuleDefinition, 'id' | 'meter' | 'unlimited'>,
  findings: Findings,
): readonly LimitWindow[] {
  const trees = fields.oneOrMore('windows', WINDOWS_MAX);
  if (unlimited && trees !== undefined) {
    findings.mistake(fields.whereIs('windows'), 'a rule has windows, or is unlimited, but not both');
  }
  if (!unlimited && !fields.has('windows')) {
    findings.mistake(
      fields.at,
      'a rule needs windows, such as [{limit: 100, per: minute}], or unlimited: true',
    );
  }
  if (!unlimited && trees?.length === 0) {
    findings.mistake(
      fields.whereIs('windows'),
      `windows must have 1 to ${WINDOWS_MAX} entries, but has none`,
    );
  }
  const windows: LimitWindow[] = [];
  for (const tree of trees ?? []) {
    const window = readWindow(tree, meter, findings);
    if (window !== undefined) addWindow(windows, window, { ruleId: id, at: tree.at }, findings);
  }
  return windows.toSorted(
    (a, b) => a.windowMillis - b.windowMillis || compareText(windowName(a), windowName(b)),
  );
}

/** Adds a window. Two windows with one name would have one counter. */
function addWindow(
  windows: LimitWindow[],
  added: LimitWindow,
  { ruleId, at }: { readonly ruleId: string; readonly at: Offset },
  findings: Findings,
): void {
  const name = windowName(added);
  if (windows.some((window) => windowName(window) === name)) {
    const period = lengthInWords(added.windowMillis);
    findings.mistake(
      at,
      added.name === undefined
        ? `there is a window ${period} already; two windows of one period need a name, such as name: peak`
        : `name ${quoted(name)} is used by another window of the rule; each needs its own`,
    );
    return;
  }
  windows.push(added);
  checkId({ text: windowRuleId({ id: ruleId }, added), at }, findings);
}

function readWindow(tree: Tree, meter: MeterName, findings: Findings): LimitWindow | undefined {
  const map = mapOf(tree, 'a window', findings);
  if (map === undefined) return undefined;
  const fields = new Fields(map, ['limit', 'per', 'windowMillis', 'name'], findings);
  const limitMax = limitMaxOf(meter);
  const limit = fields.integer('limit', 0, limitMax);
  if (!fields.has('limit')) findings.mistake(map.at, `a window needs a limit from 0 to ${limitMax}`);
  const unit = fields.choice('per', UNITS);
  const stated = fields.integer('windowMillis', 1, WINDOW_MILLIS_MAX);
  if (fields.has('per') && fields.has('windowMillis')) {
    findings.mistake(fields.whereIs('windowMillis'), 'a window has per, or windowMillis, but not both');
  } else if (!fields.has('per') && !fields.has('windowMillis')) {
    findings.mistake(map.at, `a window needs per (${UNITS.join(', ')}) or windowMillis`);
  }
  const windowMillis = unit === undefined ? stated : UNIT_MILLIS[unit];
  if (limit === undefined || windowMillis === undefined) return undefined;
  const name = readName(fields, windowMillis, findings);
  return { ...(name !== undefined && { name }), limit, windowMillis };
}

/** Reads the name of a window. Undefined if it is just its period, which is the name of a window without one. */
function readName(fields: Fields, windowMillis: number, findings: Findings): string | undefined {
  const named = fields.textAt('name', WINDOW_NAME_BYTES_MAX);
  if (named === undefined || named.text === periodOf(windowMillis)) return undefined;
  const { text, at } = named;
  if (text.includes('/')) findings.mistake(at, `name must be without a /, but is ${quoted(text)}`);
  else if (isPeriod(text)) {
    const period = lengthInWords(windowMillis);
    findings.mistake(
      at,
      `name ${quoted(text)} is a period, and the window is ${period}; choose another name`,
    );
  } else return text;
  return undefined;
}

function readBurst(
  fields: Fields,
  meter: MeterName,
  unlimited: boolean,
  findings: Findings,
): { readonly burst?: number } {
  const burst = fields.integer('burst', 1, LIMIT_MAX);
  if (!fields.has('burst')) return {};
  if (unlimited) findings.mistake(fields.whereIs('burst'), 'an unlimited rule has no burst');
  else if (!METERS_WITH_BURST.includes(meter)) {
    findings.mistake(
      fields.whereIs('burst'),
      `burst goes with meter: ${METERS_WITH_BURST.join(' or ')}; a ${meter} never grants more than its limit`,
    );
  }
  return burst === undefined ? {} : { burst };
}

function readReplaces(fields: Fields, findings: Findings): readonly TextAt[] {
  const trees = fields.oneOrMore('replaces', REPLACES_MAX) ?? [];
  return trees.flatMap((tree) => textOf(tree, 'replaces', DEFINITION_ID_BYTES_MAX, findings) ?? []);
}
