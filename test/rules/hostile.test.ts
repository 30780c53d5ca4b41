/** Tests that any document gives rules or mistakes within bounded time, and never throws. */
import { expect, it } from 'vitest';
import { readRules, type RulesRead } from '../../src/rules/read-rules.ts';
import { DOCUMENT_BYTES_MAX } from '../../src/rules/rule-definition.ts';
import { forEachSeed, IS_LONG, ROUNDS, seeded, someSeeds } from '../raft/seeded.ts';
import { TIERS } from './read.ts';

/** Processor time of this process, about twenty times the usual. Superlinear growth exceeds it. */
const CPU_MICROS_MAX = 2_500_000 * ROUNDS;
/** Enough to notice quadratic growth. `TEST_ROUNDS=16` takes the longest document there may be. */
const REPEATED_BYTES = Math.min(DOCUMENT_BYTES_MAX, (ROUNDS * DOCUMENT_BYTES_MAX) / (IS_LONG ? 16 : 32));

function expectAnswer(source: string | Uint8Array): RulesRead {
  const before = process.cpuUsage();
  const read = readRules(source);
  const { user, system } = process.cpuUsage(before);
  expect(user + system).toBeLessThan(CPU_MICROS_MAX);
  const reported = read.kind === 'mistakes' ? [...read.mistakes, ...read.notes] : read.notes;
  expect(reported.length).toBeLessThanOrEqual(200);
  for (const { line, column, message } of reported) {
    expect(Number.isSafeInteger(line) && line >= 1 && Number.isSafeInteger(column) && column >= 1).toBe(true);
    expect(message).toMatch(/^.{1,400}$/u);
  }
  return read;
}

it('bytes at random', () => {
  forEachSeed(someSeeds(100, 50), (seed) => {
    const below = seeded(seed);
    expectAnswer(Uint8Array.from({ length: below(2_000) }, () => below(256)));
  });
});

it('words and signs of YAML and of rules at random', () => {
  const signs = '{ } [ ] , : - ? | > " \' # &a *a !x !!set % --- ... << ~ 0x1 .inf \\x'.split(' ');
  const names =
    'rules id match key windows limit per domain descriptors value rate_limit tiers endpoints replaces ' +
    'unlimited requests_per_day __proto__ toString ip/24 true day';
  const spaces = [' ', ': ', '- ', '\n', '\n  ', '\n    ', '\t', '\r', '\0', '\uFEFF', '\uD800'];
  const words = [...signs, ...names.split(' '), ...spaces, ...spaces];
  forEachSeed(someSeeds(200, 100), (seed) => {
    const below = seeded(seed);
    expectAnswer(Array.from({ length: below(120) }, () => words[below(words.length)]).join(''));
  });
});

it('a valid document with a few changes', () => {
  let sound = 0;
  forEachSeed(someSeeds(100, 50), (seed) => {
    const below = seeded(seed);
    let text = TIERS;
    for (let i = below(4); i >= 0; i -= 1) {
      const at = below(text.length);
      const put = below(2) === 0 ? '' : (TIERS[below(TIERS.length)] ?? '');
      text = text.slice(0, at) + put + text.slice(at + below(3));
    }
    if (expectAnswer(text).kind === 'rules') sound += 1;
  });
  expect(sound).toBeGreaterThan(10);
});

it.each([
  '[',
  '- ',
  '? ',
  'a: ',
  '{a: ',
  '"',
  '&a ',
  '!x ',
  '*a\n',
  '%\n',
  '#\n',
  '\n',
  ' ',
  '---\n',
  '...\n',
  ']',
  '[],',
  '@\n',
  '|\n',
  'x',
  ': ',
  ':',
  '\\',
  '"\\x',
  '\r\n\t',
  '&a [*a,',
])('much of %j', (piece) => {
  const repeated = piece.repeat(Math.ceil(REPEATED_BYTES / piece.length)).slice(0, REPEATED_BYTES - 16);
  for (const text of [repeated, `rules: [${repeated.slice(0, 2 ** 16)}`]) {
    expect(expectAnswer(text).kind).toBe('mistakes');
  }
});
