/**
 * `npm run release:check`: checks everything that must be true before a version is published, the cheap checks first.
 * It stops at the first step that fails, publishes nothing, and prints at the end the commands that publish the
 * release.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import { assembleClientPackage } from '../../cluster/client-package.ts';
import { ROOT } from './packed.ts';

/** A release may be this much slower than the last one, as medians of a noisy machine differ by about as much. */
const SLOWDOWN_MAX = 0.1;
const BENCH = ['run', 'bench', '--', '--quick', '--only', 'quorate/'];

interface Release {
  readonly version: string;
  /** The tag of the previous release; undefined: this is the first. */
  readonly lastTag: string | undefined;
}

interface Step {
  readonly name: string;
  /** @throws Error with the reason if the step fails */
  readonly run: (release: Release) => void;
}

function run(command: string, args: readonly string[], cwd = ROOT): void {
  console.log(`$ ${command} ${args.join(' ')}`);
  const { status, error } = spawnSync(command, args, { cwd, stdio: 'inherit' });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status ?? 'a signal'}`);
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();
}

function releaseOf(): Release {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  const tags = git('tag', '--list', 'v*', '--sort=-version:refname').split('\n');
  return { version, lastTag: tags.find((tag) => tag !== '' && tag !== `v${version}`) };
}

function checkNames({ version }: Release): void {
  const changed = git('status', '--porcelain');
  if (changed !== '') throw new Error(`commit or remove first:\n${changed}`);
  const [, first] = /^## (\S+)/m.exec(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')) ?? [];
  if (first !== version) throw new Error(`CHANGELOG.md begins with ${first}, package.json says ${version}`);
}

/** Runs `npm publish --dry-run` for both packages. It warns if it had to correct a manifest. */
function dryRun(): void {
  const folder = mkdtempSync(join(tmpdir(), 'quorate-release-'));
  try {
    assembleClientPackage(folder);
    for (const cwd of [ROOT, folder]) {
      console.log(`$ npm publish --dry-run  # in ${cwd === ROOT ? 'the checkout' : '@quorate/client'}`);
      const { status, stderr } = spawnSync('npm', ['publish', '--dry-run'], { cwd, encoding: 'utf8' });
      console.log(stderr.trim());
      // The check needs no login.
      const said = stderr.replace(/^npm warn publish This command requires you to be logged in.*$/m, '');
      if (status !== 0 || /npm (?:warn|error)/i.test(said)) throw new Error('npm publish is not clean');
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Decisions per second by workload, of one run of the bench in `folder`. */
function benchOf(folder: string): ReadonlyMap<string, number> {
  const out = mkdtempSync(join(tmpdir(), 'quorate-bench-'));
  try {
    run('npm', [...BENCH, '--out', out], folder);
    const { summaries } = JSON.parse(readFileSync(join(out, 'results.json'), 'utf8')) as {
      readonly summaries: readonly {
        readonly cell: string;
        readonly decisionsPerSecond: { readonly median: number };
      }[];
    };
    return new Map(summaries.map(({ cell, decisionsPerSecond }) => [cell, decisionsPerSecond.median]));
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

function compareWithLast({ lastTag }: Release): void {
  if (lastTag === undefined) {
    console.log('this is the first release: there is nothing to compare it with');
    return;
  }
  const before = mkdtempSync(join(tmpdir(), 'quorate-last-'));
  try {
    run('git', ['clone', '--quiet', '--branch', lastTag, ROOT, before]);
    run('npm', ['ci', '--no-audit', '--no-fund'], before);
    const [last, now] = [benchOf(before), benchOf(ROOT)];
    const slower = [...now].filter(([name, rate]) => rate < (1 - SLOWDOWN_MAX) * (last.get(name) ?? 0));
    for (const [name, rate] of now)
      console.log(`${name}: ${Math.round(rate)}, ${lastTag} ${Math.round(last.get(name) ?? 0)} per second`);
    if (slower.length > 0)
      throw new Error(`slower than ${lastTag}: ${slower.map(([name]) => name).join(', ')}`);
  } finally {
    rmSync(before, { recursive: true, force: true });
  }
}

const STEPS: readonly Step[] = [
  { name: 'names', run: checkNames },
  { name: 'check', run: () => run('npm', ['run', 'check']) },
  { name: 'test', run: () => run('npm', ['test']) },
  { name: 'long', run: () => run('npm', ['run', 'test:long']) },
  { name: 'package', run: () => run('npm', ['run', 'package:check']) },
  { name: 'dry-run', run: dryRun },
  { name: 'bench', run: compareWithLast },
];
const NAMES = STEPS.map(({ name }) => name);

function whatToPublish({ version }: Release): string {
  return `
ready to be released: ${version}. What is left to do:
  git tag -s v${version} -m 'Quorate ${version}' && git push origin v${version}
  npm publish --provenance            # in the workflow of the tag: provenance needs its identity
  npm run pack:client && npm publish --provenance quorate-client-${version}.tgz
  npm run -s sbom > quorate-${version}.cdx.json   # attach it to the release, with this page of CHANGELOG.md`;
}

function stepNames(value: string, before: readonly string[]): readonly string[] {
  return [...before, ...value.split(',')];
}

new Command('release:check')
  .description('Checks all that must be true before a version is published, and prints how to publish it.')
  .addOption(
    new Option('--only <a,b>', `only these steps: ${NAMES.join(', ')}`)
      .argParser(stepNames)
      .default([], 'all, in this order'),
  )
  .action(({ only }: { readonly only: readonly string[] }, command: Command) => {
    const unknown = only.filter((name) => !NAMES.includes(name));
    if (unknown.length > 0)
      command.error(`--only: there is no step ${unknown.join(', ')}; steps are ${NAMES.join(', ')}`);
    const release = releaseOf();
    for (const { name, run: check } of STEPS.filter(
      (step) => only.length === 0 || only.includes(step.name),
    )) {
      console.log(`\n== ${name}`);
      try {
        check(release);
      } catch (error) {
        console.error(`\n${name} failed: ${error instanceof Error ? error.message : String(error)}`);
        process.exitCode = 1;
        return;
      }
    }
    if (only.length === 0) console.log(whatToPublish(release));
  })
  .parse();
