/**
 * The shell commands of `docs/start.md`, run in order against three nodes, answer what the page says that they answer.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually, temporaryDirectory, TestCluster } from '../cluster/harness.ts';
import { ROOT } from '../package/packed.ts';

const run = promisify(execFile);
const PAGE = readFileSync(join(ROOT, 'docs/start.md'), 'utf8');
/** A command, and the answer below it. */
const STEPS = [...PAGE.matchAll(/^```sh\n([^]*?)^```\n+(?:```json\n([^]*?)^```)?/gm)].map(
  ([, command = '', answer]) => ({ command, answer }),
);
/** Fields that differ in every run: times, waits, and log positions. */
const OF_THE_RUN = /Millis$|^retry_after$|^message$|^decided$|^version$|^from$|^rulesVersion$|^pending$/;
/** Windows come from the page, so their lengths are the same in every run. */
const STATED = /^(?:windowMillis|limit)$/;

/** The ports of a new cluster. */
const RULES = [{ id: 'default', limit: 100, windowMillis: 60_000, clock: 'cluster' }] as const;

let cluster: TestCluster;
let folder: string;

beforeAll(async () => {
  cluster = await TestCluster.start({ partitions: 2, rules: RULES });
  folder = await temporaryDirectory();
  symlinkSync(cluster.directory, join(folder, 'data'));
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  // Runs like `npx quorate` in a checkout, but without the check whether it must be compiled.
  const main = join(ROOT, 'dist/src/cli/main.js');
  writeFileSync(join(bin, 'npx'), `#!/bin/sh\nshift\nexec '${process.execPath}' '${main}' "$@"\n`, {
    mode: 0o755,
  });
});
afterAll(async () => cluster.stop());

/** @returns the part of an answer that is the same in every run */
function lasting(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(lasting);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => [
      name,
      OF_THE_RUN.test(name) && !STATED.test(name) ? typeof field : lasting(field),
    ]),
  );
}

async function outputOf(command: string): Promise<string> {
  const asked = command.replaceAll(
    /127\.0\.0\.1:810(\d)/g,
    (_, id: string) => `127.0.0.1:${cluster.port(Number(id))}`,
  );
  const env = { ...process.env, PATH: `${join(folder, 'bin')}:${process.env['PATH']}` };
  const { stdout } = await run('bash', ['-ec', asked], { cwd: folder, env });
  return stdout;
}

it('has commands with answers', () => {
  expect(STEPS.filter(({ answer }) => answer !== undefined).length).toBeGreaterThanOrEqual(4);
});

it.each(STEPS)('prints the answer of the page: $command', async ({ command, answer }) => {
  const said = await eventually('a node decides', async () => {
    const output = await outputOf(command);
    return output.includes('"allowed":false') && output.includes('temporary-reduced-capacity')
      ? undefined
      : output;
  });
  if (answer === undefined) return;
  const [got, wanted] = [said, answer].map((text): unknown => lasting(JSON.parse(text)));
  expect(got).toEqual(wanted);
});
