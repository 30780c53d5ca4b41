/** Mutants: what becomes of grants when windows of a rule come, leave and move. */
import type { Mutant } from './mutant.ts';

export const WINDOWS: readonly Mutant[] = [
  {
    id: 'WI1',
    bug: 'a window is known by its place among the windows of its rule',
    law: 'what other windows granted stays theirs',
    edits: [
      {
        in: 'rulesOf',
        find: 'id: windowRuleId(definition, window)',
        replace: 'id: windowRuleId(definition, { ...window, name: String(windows.indexOf(window)) })',
      },
      {
        in: 'windowIdsOf',
        find: 'rule.windows.map((window) => windowRuleId(rule, window))',
        replace: 'rule.windows.map((window, i) => windowRuleId(rule, { ...window, name: String(i) }))',
      },
    ],
  },
  {
    id: 'WI2',
    bug: 'a new window starts empty',
    law: 'a window that is new starts with what the others know',
    edits: [
      {
        in: 'KeyTable.isNewTo',
        find: 'if (this.siblings.length === 0) return false;',
        replace: 'if (this.siblings.length >= 0) return false;',
      },
    ],
  },
  {
    id: 'WI3',
    bug: 'what a new window starts with counts until its first grant, and is not recorded with that',
    law: 'a window that is new starts with what the others know',
    edits: [
      {
        in: 'JointJudgement.grant',
        find: 'state.inherit(inherited, brought[i]);',
        replace: 'void [inherited, brought[i]];',
      },
    ],
  },
  {
    id: 'WI4',
    bug: 'a window that comes back counts again what it knows itself',
    law: 'no grant counts twice',
    edits: [
      {
        in: 'fromLogs',
        find: 'slot === NONE ? undefined : { keys, slot }',
        replace: 'undefined',
      },
    ],
  },
  {
    id: 'WI5',
    bug: 'a window whose meter changes is new to all keys',
    law: 'a window that stays in force stays as old as it is',
    edits: [
      {
        in: 'tablesUnder',
        find: 'sinceMillis.get(keys.rule.id) ?? timeMillis',
        replace: 'keys.ruledIndex === index ? timeMillis : (sinceMillis.get(keys.rule.id) ?? timeMillis)',
      },
    ],
  },
  {
    id: 'WI6',
    bug: 'what was granted in the millisecond in which a window left is lost when it comes back',
    law: 'a window that is new starts with what the others know',
    edits: [
      { in: 'fromLogs', find: 'costAtOnce: Math.max(0, costAtOnce)', replace: 'costAtOnce: costAtOnce * 0' },
    ],
    unitTest: {
      file: 'limiter/new-windows.test.ts',
      why: 'group time must stand while the rules change twice, as it does for a leader whose clock is far behind',
    },
  },
];
