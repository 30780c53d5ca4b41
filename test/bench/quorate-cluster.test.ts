/** The cluster that is measured answers the requests of the load by the rules that these name. */
import { expect, it } from 'vitest';
import { configOf } from '../../bench/peers/quorate-cluster.ts';
import { LOAD_RULES } from '../../bench/workloads.ts';

it('has a rule for each that the load names, and the first one is for requests that name none', () => {
  const { rules } = configOf(9_000, { nodes: 3, partitions: 6 });
  // The first rule of a table binds requests of users, and cannot be named: the others are asked by name.
  const [, ...named] = rules.rules;
  expect(named).toMatchObject(Object.entries(LOAD_RULES).map(([id, rule]) => ({ id, ...rule })));
});
