/** Targets for rules documents: rules.yaml, its short form, and documents for envoyproxy/ratelimit. */
import fc from 'fast-check';
import { validateRuleTable } from '../../../src/limiter/rules.ts';
import { limiterRulesOf } from '../../../src/rules/limiter-rules.ts';
import { RuleMatcher } from '../../../src/rules/match.ts';
import { nativeForm } from '../../../src/rules/native-form.ts';
import { readRules, type RulesRead } from '../../../src/rules/read-rules.ts';
import { DEFINITIONS_MAX } from '../../../src/rules/rule-definition.ts';
import { seeded } from '../../raft/seeded.ts';
import { randomRules } from '../../rules/random-rules.ts';
import { TIERS } from '../../rules/read.ts';
import { type Outcome, promise, promiseSame, type Target } from '../target.ts';
import { nearJson } from './json.ts';

const LISTED_CHARACTERS_MAX = 1_200;
const FINDINGS_MAX = 200;
/** A text of 400 characters. */
const MESSAGE_UNITS_MAX = 800;
const ASKED = new Map([
  ['user', 'a'],
  ['tenant', 'acme'],
  ['tier', 'free'],
  ['endpoint', '/a/b'],
]);

function checkReported(read: RulesRead): void {
  const reported = read.kind === 'mistakes' ? [...read.mistakes, ...read.notes] : read.notes;
  promise(reported.length <= FINDINGS_MAX, `${reported.length} mistakes and notes`);
  for (const { line, column, message } of reported) {
    promise(Number.isSafeInteger(line) && line >= 1, `line ${line}`);
    promise(Number.isSafeInteger(column) && column >= 1, `column ${column}`);
    promise(message !== '' && message.length <= MESSAGE_UNITS_MAX, `a message: ${message}`);
  }
}

function run(input: Buffer): Outcome {
  const read = readRules(input);
  checkReported(read);
  if (read.kind === 'mistakes') {
    promise(read.mistakes.length > 0, 'mistakes are named');
    return `refused: ${read.mistakes[0]?.message ?? ''}`;
  }
  const { definitions, format } = read;
  promise(definitions.length <= DEFINITIONS_MAX, `${definitions.length} rules`);
  const rules = limiterRulesOf(definitions);
  if (rules.length > 0) validateRuleTable({ version: 1, rules });
  new RuleMatcher(definitions).match(ASKED);
  if (format === 'native') {
    const again = readRules(JSON.stringify({ rules: definitions.map(nativeForm) }));
    promise(again.kind === 'rules', 'rules in the form of an answer are read as rules');
    promiseSame(again.definitions, definitions, 'rules again');
  }
  return `read ${format}`;
}

const per = fc.constantFrom('second', 'minute', 'hour', 'day');
const limit = fc.integer({ min: 1, max: 1_000_000 });
/** Fields that random rules rarely contain. */
const detailed = fc
  .record(
    {
      limit,
      per,
      meter: fc.constantFrom('slidingCounter', 'fixedWindow', 'tokenBucket'),
      clock: fc.constantFrom('request', 'cluster'),
      failMode: fc.constantFrom('closed', 'open'),
      cost: fc.oneof(fc.integer({ min: 1, max: 9 }), fc.constant({ '/a': 2, '*': 1 })),
      comment: fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme-ascii' }),
      key: fc.constantFrom('user', ['ip/24', 'endpoint']),
      name: fc.constantFrom('peak', 'ü', '5 ms'),
    },
    { requiredKeys: ['limit', 'per', 'key'] },
  )
  .map(({ limit: most, per: unit, name, ...rest }) => ({
    rules: [{ id: 'detailed', windows: { limit: most, per: unit, ...(name && { name }) }, ...rest }],
  }));
/** Short documents only: long ones take long and find nothing more. */
const listed = fc
  .nat()
  .map((seed) => randomRules(seeded(seed)))
  .filter(({ length }) => length < LISTED_CHARACTERS_MAX)
  .map((text): unknown => JSON.parse(text));
const native = fc.oneof(listed, detailed);

const descriptor = fc.record(
  {
    key: fc.constantFrom('tenant', 'path', 'plan'),
    value: fc.constantFrom('acme', 'a*', '*me', '/health'),
    rate_limit: fc.record({ unit: fc.constantFrom('second', 'MINUTE', 'Day'), requests_per_unit: limit }),
  },
  { requiredKeys: ['key', 'rate_limit'] },
);
const differ = ({ key, value }: { key: string; value?: string }): string => `${key} ${value ?? ''}`;
const envoy = fc.record({
  domain: fc.constantFrom('shop', 'api'),
  descriptors: fc.uniqueArray(
    descriptor.chain((outer) =>
      fc
        .uniqueArray(descriptor, { maxLength: 2, selector: differ })
        .map((descriptors) => ({ ...outer, ...(descriptors.length > 0 && { descriptors }) })),
    ),
    { minLength: 1, maxLength: 3, selector: differ },
  ),
});

/** Writes the document like a person: one field a line, indented. */
function yamlOf(value: unknown, indent = ''): string {
  if (Array.isArray(value) && value.length > 0)
    return value.map((item) => `\n${indent}- ${yamlOf(item, `${indent}  `).trimStart()}`).join('');
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0)
    return JSON.stringify(value);
  return Object.entries(value)
    .map(([name, part]) => `\n${indent}${JSON.stringify(name)}: ${yamlOf(part, `${indent}  `)}`)
    .join('');
}

/** Separated by spaces; a blank stands for one. */
const SIGNS = '&a␣ *a !!str␣ !x␣ ?␣ :␣ -␣ [ ] { } , " \' #␣ <<:␣ ~ @ ` \\x 0x1 .inf 1_000'.split(' ');
const LINES = ['---\n', '...\n', '|\n', '>-\n', '\t', '\r\n', '\n\n  ', '%YAML 1.1\n', '\uFEFF', '\u2028'];
const YAML_WORDS = [...SIGNS.map((sign) => sign.replace('␣', ' ')), ...LINES];
const NATIVE_WORDS =
  'rules id match key windows limit per windowMillis name meter burst cost clock failMode enabled priority group shadow replaces comment unlimited rate_limits tiers endpoints customers default requests_per_day __proto__ day'.split(
    ' ',
  );
const ENVOY_WORDS =
  'domain descriptors key value rate_limit unit requests_per_unit unlimited name replaces shadow_mode detailed_metric share_threshold value_to_metric __proto__ minute'.split(
    ' ',
  );
const COMMON = { bytesMax: 4_096, bytesPerByteMax: 8_192, run };

function written(document: unknown): Buffer {
  return Buffer.from(yamlOf(document).trimStart());
}

export const RULES: readonly Target[] = [
  {
    name: 'rules-yaml',
    parser: 'rules.yaml',
    sound: fc.oneof(
      native.map(written),
      native.map((each) => Buffer.from(JSON.stringify(each))),
      fc.constant(Buffer.from(TIERS)),
    ),
    near: nearJson(native),
    words: [...YAML_WORDS, ...NATIVE_WORDS],
    ...COMMON,
  },
  {
    name: 'envoy-yaml',
    parser: 'rules for envoyproxy/ratelimit',
    sound: envoy.map(written),
    near: nearJson(envoy),
    words: [...YAML_WORDS, ...ENVOY_WORDS],
    ...COMMON,
  },
];
