/** raft/ is pure and stays so: it imports nothing but itself, and none of its assertions can be switched off. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { assert, InvariantError } from '../../raft/assert.ts';

const RAFT = join(import.meta.dirname, '..', '..', 'raft');
const files = readdirSync(RAFT).filter((name) => name.endsWith('.ts'));
const read = (name: string): string => readFileSync(join(RAFT, name), 'utf8');

afterEach(() => vi.unstubAllEnvs());

test('there is something to look at', () => {
  expect(files).toContain('core.ts');
  expect(readdirSync(RAFT).filter((name) => !name.endsWith('.ts'))).toEqual(['README.md']);
});

test.each(files)('%s imports only from its own folder', (name) => {
  const text = read(name);
  const specifiers = [...text.matchAll(/\b(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g)].map(
    ([, from]) => from,
  );
  expect(specifiers.filter((from) => from === undefined || !/^\.\/[a-z-]+\.ts$/.test(from))).toEqual([]);
  expect(text).not.toMatch(/\bimport\s*\(|\brequire\s*\(|\bimport\.meta\b|\bglobalThis\b/);
});

test.each(files)('%s asserts always: nothing surrounds it that depends on the environment', (name) => {
  expect(read(name)).not.toMatch(/\bprocess\.(?:env|argv)|NODE_ENV|\bDEBUG\b|console\./);
});

test('an assertion that fails throws, also in production', () => {
  vi.stubEnv('NODE_ENV', 'production');
  expect(() => assert(false, 'two and two are five')).toThrow(InvariantError);
  expect(() => assert(false, 'two and two are five')).toThrow('invariant violated: two and two are five');
  expect(() => assert(true, 'two and two are four')).not.toThrow();
});
