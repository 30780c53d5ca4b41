/** Tests the scripts of `quorate completion`, and runs one in bash. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { ran, ROOT } from './command.ts';
import { walked } from './walk.ts';

const run = promisify(execFile);

async function scriptFor(shell: string): Promise<string> {
  const { code, stdout } = await ran(['completion', shell], ROOT);
  expect(code).toBe(0);
  return stdout;
}

async function isInstalled(shell: string): Promise<boolean> {
  return run(shell, ['--version']).then(
    () => true,
    () => false,
  );
}

describe('in bash', () => {
  it.each([
    [['ru'], ['rules']],
    [
      ['rules', ''],
      ['show', 'check', 'diff', 'apply', '--version', '--token-file', '--help'],
    ],
    [['rules', 'apply', '--if'], ['--if-version']],
    [['rules', 'apply', '--node', 'rules', '--js'], ['--json']],
    [['tokens', 'c'], ['create']],
    [['drain', '2', '--un'], ['--undo']],
    [['completion', 'b'], ['bash']],
    [['users', 'get', 'ada', '--to'], ['--token-file']],
    [['completion', 'no', 'such'], []],
  ])('%j becomes %j', async (typed, expected) => {
    const script = await scriptFor('bash');
    const words = ['quorate', ...typed].map((word) => `'${word}'`).join(' ');
    const asked = `${script}\nCOMP_WORDS=(${words}); COMP_CWORD=${typed.length}; _quorate; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout } = await run('bash', ['-c', asked]);
    expect(stdout.split('\n').filter((line) => line !== '')).toEqual(expected);
  });
});

it('bash has every command and option', async () => {
  const script = await scriptFor('bash');
  for (const { path, command } of walked()) {
    const [line = ''] =
      script.match(new RegExp(`^    '${path.replace('quorate', '')}'\\) words=.*$`, 'm')) ?? [];
    const words = [
      ...command.options.map(({ long }) => long),
      ...command.commands.map((each) => each.name()),
    ];
    expect(line.split(/[' ]/)).toEqual(expect.arrayContaining([...words, '--help']));
  }
});

it.each(['zsh', 'fish'])(
  '%s has every command and option, and reads the script where it is installed',
  async (shell) => {
    const script = await scriptFor(shell);
    for (const { path, command } of walked()) {
      expect(script).toContain(`'${path.replace('quorate', '')}'`);
      for (const { long } of command.options)
        expect(script).toMatch(new RegExp(shell === 'fish' ? `-l ${long?.slice(2)} ` : `${long} `));
    }
    if (await isInstalled(shell)) await run(shell, ['-n', '-c', script]);
  },
);

it('refuses another shell', async () => {
  expect((await ran(['completion', 'tcsh'], ROOT)).code).toBe(64);
});
