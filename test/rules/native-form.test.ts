/** Tests that a rule written in its native form is read as the same rule. */
import { expect, it } from 'vitest';
import { nativeForm } from '../../src/rules/native-form.ts';
import { readRules } from '../../src/rules/read-rules.ts';
import type { RuleDefinition } from '../../src/rules/rule-definition.ts';
import { forEachSeed, seeded, someSeeds } from '../raft/seeded.ts';
import { TIERS } from './read.ts';
import { randomRules } from './random-rules.ts';

function definitionsOf(text: string): readonly RuleDefinition[] {
  const read = readRules(text);
  if (read.kind !== 'rules') throw new Error(read.mistakes.map(({ message }) => message).join('\n'));
  return read.definitions;
}

function reportedAgain(text: string): readonly RuleDefinition[] {
  return definitionsOf(JSON.stringify({ rules: definitionsOf(text).map(nativeForm) }));
}

const EVERY_FIELD = `
rules:
  - id: every field
    match: { endpoint: /api/*, tier: pro }
    key: [ip/24/64, user]
    windows: [{ limit: 10, per: minute }, { limit: 50, windowMillis: 90000 }]
    meter: leakyBucket
    burst: 3
    cost: { /api/yearly: 5, '*': 2 }
    clock: cluster
    failMode: local
    enabled: false
    priority: -7
    group: of its own
    shadow: true
    replaces: [other]
    comment: "all of it: #1"
  - { id: other, unlimited: true }
  - { id: costly, key: user, windows: { limit: 1, per: day }, cost: 4 }
`;

it('with all fields of a rule, in the long form and the short one', () => {
  for (const text of [EVERY_FIELD, TIERS]) expect(reportedAgain(text)).toEqual(definitionsOf(text));
});

it('with random rules', () => {
  forEachSeed(someSeeds(20, 10), (seed) => {
    const text = randomRules(seeded(seed));
    expect(reportedAgain(text)).toEqual(definitionsOf(text));
  });
});

it('a rule for ordered descriptors has no native form', () => {
  const envoy = 'domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 3}}]';
  const read = readRules(envoy);
  expect(read.kind === 'rules' && read.definitions.map(nativeForm)).toEqual([undefined]);
});
