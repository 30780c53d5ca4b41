/** Tests which rules are in force while a change spreads. */
import { expect, it } from 'vitest';
import { LOCAL_DEFAULTS, localConfig } from '../../src/config/cluster-directory.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import { rulesInForce } from '../../src/node/replicas.ts';

function tableOf(version: number, limit: number): RuleTable {
  const { rules } = localConfig({ ...LOCAL_DEFAULTS, limit });
  return { ...rules, version };
}

it('the rules in force are the newest ones that a partition has', () => {
  expect(rulesInForce([])).toBeUndefined();
  const partitions = [undefined, tableOf(1, 100), tableOf(2, 50)].map((ruleTable) => ({ ruleTable }));
  expect(rulesInForce(partitions)).toMatchObject({ version: 2 });
});
