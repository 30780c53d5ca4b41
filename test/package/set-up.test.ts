/**
 * Tests which npm commands the set-up of a checkout runs, with a fake npm. Development packages must be installed
 * explicitly.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { temporaryDirectory } from '../cluster/harness.ts';

const ROOT = join(import.meta.dirname, '../..');
/** A fake npm: with NODE_ENV=production it omits development packages, except with `--include=dev`. */
const NPM = `#!/bin/sh
echo "$@" >> "$PWD/asked"
mkdir -p node_modules/.bin
case "$NODE_ENV $*" in
  production*--include=dev*) ;;
  production*) exit 0 ;;
esac
mkdir -p node_modules/typescript/bin
echo > node_modules/typescript/bin/tsc
`;
let clone: string;

beforeEach(async () => {
  clone = await temporaryDirectory();
  for (const name of ['cluster/setup.mjs', 'bin/quorate.mjs', 'package.json', 'package-lock.json'])
    cpSync(join(ROOT, name), join(clone, name));
  mkdirSync(join(clone, 'path'));
  writeFileSync(join(clone, 'path/npm'), NPM, { mode: 0o755 });
});
afterEach(() => rmSync(clone, { recursive: true }));

function setUp(): string[] {
  const env = {
    ...process.env,
    NODE_ENV: 'production',
    PATH: `${join(clone, 'path')}:${process.env['PATH']}`,
  };
  const args = [join(clone, 'cluster/setup.mjs'), '--no-build'];
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: clone, env, encoding: 'utf8' });
  expect(stderr).not.toContain('failed');
  expect(status).toBe(0);
  return readFileSync(join(clone, 'asked'), 'utf8').trim().split('\n');
}

const compiler = (): string => join(clone, 'node_modules/typescript/bin/tsc');

it('with NODE_ENV=production a fresh clone gets its compiler, and nothing is installed twice', () => {
  setUp();
  expect(existsSync(compiler())).toBe(true);
  expect(setUp()).toHaveLength(1);
});

it('a clone without a compiler gets one', () => {
  setUp();
  rmSync(compiler());
  expect(setUp()).toHaveLength(2);
  expect(existsSync(compiler())).toBe(true);
});
