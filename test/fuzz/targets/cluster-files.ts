/** Targets for the files beside a database: `cluster.json`, `members.json` and the floor of its batches. */
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { localConfig, parseCluster } from '../../../src/config/cluster-directory.ts';
import { ConfigError, validateConfig } from '../../../src/config/config.ts';
import { parseKnownMembers } from '../../../src/node/member-cache.ts';
import { DamageFound } from '../../../storage/errors.ts';
import { parseFloor } from '../../../storage/files.ts';
import { type Outcome, promise, promiseSame, readOr, type Target } from '../target.ts';
import { nearJson } from './json.ts';
import { table } from './made.ts';

function runCluster(input: Buffer): Outcome {
  const read = readOr([ConfigError], () => parseCluster(input.toString(), 'cluster.json'));
  if ('refused' in read) return read.refused;
  promiseSame(validateConfig(JSON.parse(JSON.stringify(read.value))), read.value, 'a configuration again');
  return 'read';
}

function runMembers(input: Buffer): Outcome {
  const known = parseKnownMembers(input.toString());
  if (known === undefined) return 'refused: as if it were not there';
  for (const number of [known.version, known.settledVersion, ...known.nodes, ...known.retired])
    promise(Number.isSafeInteger(number) && number >= 0, `${String(number)} is a version or a node`);
  return 'read';
}

/** Corrects the checksum of an input, because otherwise the checksum alone would detect all damage. */
function runFloor(input: Buffer): Outcome {
  const text = input
    .toString('latin1')
    .replace(/^(.*) crc \d+\n$/s, (_, reported: string) => `${reported} crc ${crc32(reported)}\n`);
  const read = readOr([DamageFound], () => parseFloor(text));
  if ('refused' in read) return read.refused;
  promise(Number.isSafeInteger(read.value.batch), `${read.value.batch} is the number of a batch`);
  return 'read';
}

const nodes = fc.integer({ min: 1, max: 5 });
/**
 * The rules of a new cluster have no version field: they are the first version. No rule in them is a window of another
 * rule.
 */
const firstRules = table.map((made) => {
  const { version: _, ...rules } = made;
  return { ...rules, rules: rules.rules.map(({ of: _of, ...rule }) => rule) };
});
const config = fc.tuple(nodes, firstRules, fc.boolean()).map(([count, rules, isPlain]) => ({
  ...localConfig({ nodes: count, limit: 7, windowMillis: 1_000, basePort: 8_100 }),
  ...(!isPlain && { rules, stateBytesMax: 1 << 20, snapshotEveryBytes: 1 << 20 }),
  ...(!isPlain && { http: { userHeader: 'x-user' } }),
}));
const members = fc.record(
  {
    version: fc.nat(9),
    settledVersion: fc.nat(9),
    nodes: fc.array(nodes, { maxLength: 3 }),
    retired: fc.array(nodes, { maxLength: 3 }),
    isRemoved: fc.boolean(),
    rules: table,
  },
  { requiredKeys: ['version', 'settledVersion', 'nodes', 'retired', 'isRemoved'] },
);
const floor = fc
  .tuple(fc.maxSafeNat(), fc.array(fc.constantFrom('000003.log', '000017.log'), { maxLength: 3 }))
  .map(([batch, logs]) => `batch ${batch} torn [${logs.join(' ')}]`);

const WORDS = ['null', '[]', '{}', '"__proto__":{}', '"rules":', ',', '\\u0000', '1e400', '\uFEFF'];
const COMMON = { words: WORDS, bytesMax: 8_192, bytesPerByteMax: 512 };

export const CLUSTER_FILES: readonly Target[] = [
  {
    name: 'cluster-json',
    parser: 'cluster.json',
    sound: config.map((each) => Buffer.from(JSON.stringify(each))),
    near: nearJson(config),
    ...COMMON,
    run: runCluster,
  },
  {
    name: 'members-json',
    parser: 'members.json',
    sound: members.map((each) => Buffer.from(JSON.stringify(each))),
    near: nearJson(members),
    ...COMMON,
    run: runMembers,
  },
  {
    name: 'floor',
    parser: 'the floor beside a database',
    sound: floor.map((text) => Buffer.from(`${text} crc ${crc32(text)}\n`)),
    words: [' crc 1\n', 'batch ', ' torn [', '] ', '.log'],
    bytesMax: 1_024,
    bytesPerByteMax: 512,
    run: runFloor,
  },
];
