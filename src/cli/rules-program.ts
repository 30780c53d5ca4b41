/** The options of `quorate rules`. */
import type { Command } from 'commander';
import { ConfigError } from '../config/config.ts';
import { type ClusterOptions, nodeOf, withCluster } from './asked-cluster.ts';
import { explained } from './command-line.ts';
import { EXIT_MISTAKES, EXIT_TEMPORARY } from './explain-error.ts';
import { integerOption, JSON_OPTION } from './options.ts';

const EXIT_OF_APPLY = { applied: 0, pending: EXIT_TEMPORARY, mistakes: EXIT_MISTAKES } as const;
const FILE = ['<file>', 'rules.yaml, or descriptors of envoyproxy/ratelimit; - is standard input'] as const;

interface Asked extends ClusterOptions {
  readonly json?: true;
}

/** Adds `rules` to the program. */
export function addRulesCommands(program: Command, print: (line: string) => void): void {
  const rules = explained(program.command('rules'), {
    does: 'show, check, compare and apply rules',
    examples: ['quorate rules show'],
  });
  withCluster(
    explained(rules.command('show'), {
      does: 'print the rules of a cluster as a document that can be edited and applied',
      examples: ['quorate rules show > rules.yaml'],
    }),
  )
    .option(...JSON_OPTION)
    .action(async (options: Asked) => {
      const { showRules } = await import('./rules-apply.ts');
      await showRules({ ...options, node: await nodeOf(options), print });
    });
  explained(rules.command('check'), {
    does: 'check a document of rules, and print all mistakes; needs no cluster',
    exits: { 0: 'no mistakes', 1: 'there are mistakes' },
    examples: ['quorate rules check rules.yaml'],
  })
    .argument(...FILE)
    .option(...JSON_OPTION)
    .action(async (file: string, options: { json?: true }) => {
      const { checkRules } = await import('./rules-command.ts');
      if (!(await checkRules(file, { ...options, print }))) process.exitCode = EXIT_MISTAKES;
    });
  addDiff(rules, print);
  withCluster(
    explained(rules.command('apply'), {
      does: 'check a document of rules, print what it changes, and put it in force in a cluster',
      exits: {
        0: 'it is in force in every partition',
        1: 'there are mistakes in it; nothing was changed',
        75: 'in force, except in partitions without a leader, which follow later',
      },
      examples: ['quorate rules apply rules.yaml', 'quorate rules apply rules.yaml --if-version 7'],
    }),
  )
    .argument(...FILE)
    .option('--if-version <n>', 'only if this version is in force', integerOption)
    .option(...JSON_OPTION)
    .action(async (file: string, options: Asked & { ifVersion?: number }) => {
      const { applyRules } = await import('./rules-apply.ts');
      const asked = { ...options, node: await nodeOf(options), print };
      process.exitCode = EXIT_OF_APPLY[await applyRules(file, asked)];
    });
}

function addDiff(rules: Command, print: (line: string) => void): void {
  withCluster(
    explained(rules.command('diff'), {
      does: 'print the changes from the rules of a cluster to a document, or from one document to another',
      exits: { 0: 'the changes were printed', 1: 'there are mistakes in a document' },
      examples: ['quorate rules diff rules.yaml', 'quorate rules diff old.yaml new.yaml'],
    }),
  )
    .argument(...FILE)
    .argument('[new]', 'a document to compare it with, in place of the rules of a cluster')
    .option(...JSON_OPTION)
    .action(async (first: string, second: string | undefined, options: Asked) => {
      if (second === undefined) {
        const { compareWithCluster } = await import('./rules-apply.ts');
        const asked = { ...options, node: await nodeOf(options), print };
        if (!(await compareWithCluster(first, asked))) process.exitCode = EXIT_MISTAKES;
        return;
      }
      for (const name of ['node', 'data', 'ca'] as const)
        if (options[name] !== undefined)
          throw new ConfigError(`--${name}`, 'names a cluster: give one document with it, not two');
      const { compareRules } = await import('./rules-command.ts');
      if (!(await compareRules({ oldFile: first, newFile: second }, { ...options, print })))
        process.exitCode = EXIT_MISTAKES;
    });
}
