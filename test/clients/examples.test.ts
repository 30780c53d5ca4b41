/** Tests the programs of docs/languages/, and that a wrong program is found. */
import { describe, expect, it } from 'vitest';
import { EXAMPLES, examplesOf, programOf } from './examples.ts';
import { ranIn, type Situation, wordOf } from './situations.ts';

const NODES = { http: 'http://127.0.0.1:7', redis: '127.0.0.1:8' };
const LIMIT: Situation = { name: 'limit', nodes: NODES, token: 'qt_', wants: 'decisions' };
const AWAY: Situation = { name: 'away', nodes: NODES, wants: 'unavailable' };
const CLOSED: Situation = { name: 'closed', nodes: NODES, wants: 'failure' };
const DECIDED = ['allowed, 2 left', 'allowed, 1 left', 'allowed, 0 left', 'denied, retry after 600 s'];
const UNDECIDED = Array.from({ length: 4 }, () => 'unavailable: denied');

/** A program in JavaScript, which needs nothing to be installed. */
function printing(lines: readonly string[], code = 0): readonly [string, ...string[]] {
  return [process.execPath, '-e', `console.log(${JSON.stringify(lines.join('\n'))}); process.exit(${code})`];
}

async function wordFor(situation: Situation, lines: readonly string[], code?: number): Promise<string> {
  return wordOf(situation, () => ranIn(situation, 'http', printing(lines, code)));
}

describe('the pages of other languages', () => {
  it('have a program over HTTP and one over the Redis protocol in each of four languages', () => {
    const found = EXAMPLES.map(({ file }) => [file.split('.')[1], programOf(file).protocol]);
    expect(found).toEqual(
      ['py', 'go', 'java', 'php'].flatMap((language) => ['http', 'redis'].map((one) => [language, one])),
    );
  });

  it('name the file of each program, and mark the place where its caller chooses what to do without a decision', () => {
    expect(
      EXAMPLES.filter(({ text }) => !text.includes('Your choice. This fails closed; to fail open, ')),
    ).toEqual([]);
    expect(() => examplesOf('```go\npackage main\n```\n')).toThrow('does not name its file');
    expect(() => programOf('limit.rb')).toThrow('how is limit.rb run?');
  });
});

describe('a program of a page', () => {
  it('is correct if it prints the output of the page, with the actual wait', async () => {
    expect(await wordFor(LIMIT, DECIDED)).toBe('ok');
    expect(await wordFor(AWAY, UNDECIDED)).toBe('ok');
    expect(await wordFor(CLOSED, ['Fatal error'], 255)).toBe('ok');
  });

  it.each([
    ['grants a fourth', LIMIT, [...DECIDED.slice(0, 3), 'allowed, 0 left'], 0],
    ['counts wrongly', LIMIT, ['allowed, 3 left', ...DECIDED.slice(1)], 0],
    ['has no wait', LIMIT, [...DECIDED.slice(0, 3), 'denied, retry after 0 s'], 0],
    ['fails after its last line', LIMIT, DECIDED, 1],
    ['never gets a decision', LIMIT, UNDECIDED, 0],
    ['grants without a node', AWAY, DECIDED, 0],
    ['fails instead of using its choice', AWAY, UNDECIDED, 1],
    ['treats a wrong token like a node that is down', CLOSED, UNDECIDED, 0],
    ['denies for a wrong token', CLOSED, ['denied: no token'], 1],
  ])('is found wrong that %s', async (_what, situation, lines, code) => {
    expect(await wordFor(situation, lines, code)).toContain(`${situation.wants} were due`);
  });

  it('runs again if no node decided, as in an election, but not if no node can decide', async () => {
    const attempts: number[] = [];
    const run = async (attempt: number) => {
      attempts.push(attempt);
      return { lines: attempt === 1 ? UNDECIDED : DECIDED, hasFailed: false };
    };
    expect(await wordOf(LIMIT, run)).toBe('ok');
    expect(await wordOf(AWAY, run)).toBe('ok');
    expect(attempts).toEqual([1, 2, 1]);
  });

  it('gets its nodes and its token from the environment', async () => {
    const code = 'console.log(process.env.QUORATE_NODES); console.log(process.env.QUORATE_TOKEN)';
    const command = [process.execPath, '-e', code] as const;
    expect((await ranIn(LIMIT, 'redis', command)).lines).toEqual([NODES.redis, 'qt_']);
    expect((await ranIn(AWAY, 'http', command)).lines).toEqual([NODES.http, 'undefined']);
  });
});
