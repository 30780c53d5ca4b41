/** Mutants: what becomes of grants when windows of a rule are added, removed or moved. */
import type { Mutant } from './mutant.ts';

export const WINDOWS: readonly Mutant[] = [
  {
    id: 'WI1',
    bug: 'a window is identified by its place in the list of its rule',
    law: 'the grants of a window stay its own',
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
    law: 'a new window starts with the grants that the other windows know',
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
    bug: 'grants that a new window inherits count only until its first own grant',
    law: 'a new window starts with the grants that the other windows know',
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
    bug: 'a window that comes back counts grants again that it still knows itself',
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
    bug: 'a window whose meter changes counts as new for all keys',
    law: 'a window that stays in force keeps its age',
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
    bug: 'a window that comes back lacks the grants of the millisecond in which it was removed',
    law: 'a new window starts with the grants that the other windows know',
    edits: [
      { in: 'fromLogs', find: 'costAtOnce: Math.max(0, costAtOnce)', replace: 'costAtOnce: costAtOnce * 0' },
    ],
    unitTest: {
      file: 'limiter/new-windows.test.ts',
      why: 'group time must stand still while the rules change twice, as it does for a leader whose clock is far behind',
    },
  },
];
