/** Tests that the measured cluster decides the requests of the load by the rules they name. */
import { expect, it } from 'vitest';
import { configOf } from '../../bench/peers/quorate-cluster.ts';
import { LOAD_RULES } from '../../bench/workloads.ts';
import { questionOf } from '../../src/api/question.ts';
import { RuleSet } from '../../src/matching/rule-set.ts';
import { definitionsOfTable } from '../../src/rules/limiter-rules.ts';

it.each(Object.entries(LOAD_RULES))(
  'puts a request that names %s under that rule alone',
  (rule, { limit }) => {
    const { rules } = configOf(9_000, { nodes: 3, partitions: 6 });
    const ruleSet = new RuleSet(1, definitionsOfTable(rules.rules));
    const limits = ruleSet.limitsFor(questionOf({ userId: 'ada', rule }));
    expect(limits).toMatchObject({ kind: 'limits', enforced: [{ userId: 'user=ada', window: { limit } }] });
  },
);
