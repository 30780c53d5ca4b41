/** Tests the systemd unit: systemd accepts it, its sandbox is tight, and it runs an existing command. */
import { execFile } from 'node:child_process';
import { copyFile, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EXIT_USAGE } from '../../src/cli/explain-error.ts';
import { ran, ROOT } from '../cli/command.ts';
import { temporaryDirectory } from '../cluster/harness.ts';
import { programOf } from '../gateways/gateway.ts';

const run = promisify(execFile);
const NAME = 'quorate@.service';
const UNIT = join(ROOT, 'cluster', 'systemd', NAME);
/** The highest allowed exposure in tenths, as in the option of systemd-analyze. A unit without a sandbox has 96. */
const EXPOSURE_MAX = 20;
const analyze = programOf('systemd-analyze', 'SYSTEMD_ANALYZE');
if (analyze === undefined)
  console.log('skipped: there is no systemd-analyze here, nor its path in SYSTEMD_ANALYZE');

let directory: string;
let text: string;
beforeAll(async () => {
  directory = await temporaryDirectory();
  text = await readFile(UNIT, 'utf8');
});
afterAll(() => rm(directory, { recursive: true }));

/** Returns its output and its exit code. */
async function analyzed(
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly output: string }> {
  const ended = run(analyze ?? '', [...args], { cwd: directory, env: { ...process.env, SYSTEMD_PAGER: '' } });
  return ended.then(
    ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
    (error: unknown) => {
      const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
      return { code, output: stdout + stderr };
    },
  );
}

/** The unit with the path of an existing program, because systemd checks that it exists. */
async function verified(change: (unit: string) => string): Promise<string> {
  const installed = text.replace('/usr/bin/node', process.execPath).replace('/opt/quorate', ROOT);
  await writeFile(join(directory, NAME), change(installed));
  const { output } = await analyzed('verify', `./${NAME}`);
  return output;
}

describe.skipIf(analyze === undefined)('systemd', () => {
  it('finds nothing wrong with the unit, and finds a mistake in a wrong one', async () => {
    expect(await verified((unit) => unit)).toBe('');
    expect(await verified((unit) => unit.replace('ProtectHome', 'ProtectHomes'))).toContain('Unknown key');
    expect(await verified((unit) => unit.replace(process.execPath, '/no/node'))).toContain('not executable');
  });

  it('rates its sandbox as tight, and a unit without one as exposed', async () => {
    const score = ['security', '--offline=true', `--threshold=${EXPOSURE_MAX}`];
    await copyFile(UNIT, join(directory, NAME));
    const { code, output } = await analyzed(...score, `./${NAME}`);
    expect(output).toMatch(/Overall exposure level .*: [01]\.\d OK/);
    expect(code).toBe(0);
    const bare = text.replace(/^# A node writes to its own directory[^]*?^(?=\[Install\])/m, '');
    expect(bare).not.toContain('ProtectSystem');
    await writeFile(join(directory, NAME), bare);
    expect((await analyzed(...score, `./${NAME}`)).code).not.toBe(0);
  });
});

describe('the unit', () => {
  it('runs an existing command, and stops restarting it only after an error that needs a change', async () => {
    const [, command = ''] =
      /^ExecStart=\/usr\/bin\/node .*\/dist\/src\/cli\/main\.js (.*)$/m.exec(text) ?? [];
    expect(command).toBe('node %i --data /var/lib/quorate');
    const [name = '', ...args] = command.replace('%i', '1').replace('/var/lib/quorate', 'none').split(' ');
    // The command knows all options and complains only about the directory.
    expect(await ran([name, ...args], directory)).toMatchObject({
      code: EXIT_USAGE,
      said: expect.stringContaining('none holds no cluster.json'),
    });
    expect(text).toContain(`RestartPreventExitStatus=${EXIT_USAGE}\n`);
    expect(text).toContain('StateDirectory=quorate\n');
  });
});
