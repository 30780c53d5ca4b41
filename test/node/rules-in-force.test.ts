/** A file whose rules are not in force, and will not be, is noticed. */
import { expect, it } from 'vitest';
import { LOCAL_DEFAULTS, localConfig } from '../../src/config/cluster-directory.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import { isOverruled, rulesInForce, RulesWatch } from '../../src/node/rules-in-force.ts';

function tableOf(version: number, limit: number): RuleTable {
  const { rules } = localConfig({ ...LOCAL_DEFAULTS, limit });
  return { ...rules, version };
}

it('a table is overruled by one of its version with other content, and by a later one', () => {
  const file = tableOf(2, 50);
  expect(isOverruled(file, tableOf(2, 50))).toBe(false);
  expect(isOverruled(file, tableOf(2, 100))).toBe(true);
  expect(isOverruled(file, tableOf(3, 50))).toBe(true);
  // It will replace that one.
  expect(isOverruled(file, tableOf(1, 100))).toBe(false);
});

it('is told once, whatever the number of partitions, and again only of a later version', () => {
  const told: number[] = [];
  const watch = new RulesWatch(tableOf(2, 50), ({ version }) => told.push(version));
  const tables = [undefined, tableOf(1, 100), tableOf(2, 50)];
  watch.look(tables.map((ruleTable) => ({ ruleTable })));
  expect(told).toEqual([]);
  for (const version of [2, 2, 3]) {
    const partitions = [tableOf(version, 100), tableOf(version, 100)].map((ruleTable) => ({ ruleTable }));
    watch.look(partitions);
    watch.look(partitions);
  }
  expect(told).toEqual([2, 3]);
});

it('those in force are the newest that a partition has', () => {
  expect(rulesInForce([])).toBeUndefined();
  const partitions = [undefined, tableOf(1, 100), tableOf(2, 50)].map((ruleTable) => ({ ruleTable }));
  expect(rulesInForce(partitions)).toMatchObject({ version: 2 });
});
