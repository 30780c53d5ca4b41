/** The README of the room names every file, and the example of its page can be read. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ruleInWords } from '../../src/rules/words.ts';
import { noted, rulesOf } from './read.ts';

const ROOM = join(import.meta.dirname, '..', '..', 'src', 'rules');
const readme = readFileSync(join(ROOM, 'README.md'), 'utf8');
const page = readFileSync(join(ROOM, '..', '..', 'docs', 'internals', 'rules.md'), 'utf8');

describe('the readme', () => {
  it('has a valid example, as the page about rules', () => {
    const front = readFileSync(join(ROOM, '..', '..', 'docs/concepts/keys-and-rules.md'), 'utf8');
    const [, example = ''] = /```yaml\n(rules:[^]*?)```/.exec(front) ?? [];
    expect(noted(example)).toEqual([]);
    expect(rulesOf(example).map(({ id }) => id)).toEqual(['per-user', 'per-network', 'reports']);
  });

  it('links to a page whose example means exactly this', () => {
    expect(readme).toContain('docs/internals/rules.md');
    const [, example = ''] = /```yaml\n([^]*?)```/.exec(page) ?? [];
    expect(noted(example)).toEqual([]);
    expect(rulesOf(example).map((rule) => `${rule.id}: ${ruleInWords(rule)}`)).toEqual([
      'per-user: 100 per minute by user',
      'per-network: 1,000 per minute by ip/24/64',
      'reports: 10 per minute and 50 per day by user, where endpoint is /api/reports/*',
      'partner: unlimited by user, where user is partner-7',
      'new-tier: 20 per minute by user, where tier is free (in shadow)',
      'everybody: 50,000 per second for all together',
    ]);
  });

  it('names every file', () => {
    const files = readdirSync(ROOM).filter((name) => name.endsWith('.ts'));
    for (const name of files) expect(readme).toContain(`\`${name}\``);
  });

  it('describes a room that does no input or output', () => {
    for (const name of readdirSync(ROOM).filter((one) => one.endsWith('.ts'))) {
      const text = readFileSync(join(ROOM, name), 'utf8');
      const imports = [...text.matchAll(/from '([^']+)'/g)].map(([, from = '']) => from);
      expect(
        imports.filter((from) => !/^(?:\.\/[a-z-]+\.ts|\.\.\/api\/[a-z-]+\.ts|yaml)$/.test(from)),
      ).toEqual([]);
    }
  });
});
