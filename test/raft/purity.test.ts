/** raft/ is pure: it imports nothing from other folders, and none of its assertions can be switched off. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { assert, InvariantError } from '../../raft/assert.ts';

const RAFT = join(import.meta.dirname, '..', '..', 'raft');
const files = readdirSync(RAFT, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
const read = (name: string): string => readFileSync(join(RAFT, name), 'utf8');

afterEach(() => vi.unstubAllEnvs());

test('raft/ has files to check', () => {
  expect(files).toContain('core.ts');
  expect(files).toContain('driver/multi-raft.ts');
});

test.each(files)('%s imports nothing but raft, and the core nothing of the driver', (name) => {
  const text = read(name);
  const specifiers = [...text.matchAll(/\b(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g)].map(
    ([, from]) => from,
  );
  const isAllowed = name.startsWith('driver/') ? /^\.{1,2}\/[a-z-]+\.ts$/ : /^\.\/[a-z-]+\.ts$/;
  expect(specifiers.filter((from) => from === undefined || !isAllowed.test(from))).toEqual([]);
  expect(text).not.toMatch(/\bimport\s*\(|\brequire\s*\(|\bimport\.meta\b|\bglobalThis\b/);
});

test.each(files)('%s asserts in every environment', (name) => {
  expect(read(name)).not.toMatch(/\bprocess\.(?:env|argv)|NODE_ENV|\bDEBUG\b|console\./);
});

test('an assertion that fails throws, also in production', () => {
  vi.stubEnv('NODE_ENV', 'production');
  expect(() => assert(false, 'two and two are five')).toThrow(InvariantError);
  expect(() => assert(false, 'two and two are five')).toThrow('invariant violated: two and two are five');
  expect(() => assert(true, 'two and two are four')).not.toThrow();
});
