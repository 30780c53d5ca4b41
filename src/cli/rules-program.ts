/** `quorate rules`: what the command line takes, and what it asks for. */
import type { Command } from 'commander';
import { ConfigError } from '../config/config.ts';
import { CA } from './ca-option.ts';
import { EXIT_MISTAKES, EXIT_TEMPORARY } from './explain-error.ts';
import { integerOption, JSON_OPTION, NODE, nodeOption, VIA_DEFAULT } from './options.ts';

const EXIT_OF_APPLY = { applied: 0, pending: EXIT_TEMPORARY, mistakes: EXIT_MISTAKES } as const;

export function addRulesCommands(program: Command, print: (line: string) => void): void {
  const rules = program.command('rules').description('check, compare and apply documents of rules');
  rules
    .command('check')
    .description('say everything that is wrong in a document of rules; exits with 1 if something is')
    .argument('<file>', 'rules.yaml, or descriptors of envoyproxy/ratelimit; - is standard input')
    .option(...JSON_OPTION)
    .action(async (file: string, options: { json?: true }) => {
      const { checkRules } = await import('./rules-command.ts');
      if (!(await checkRules(file, { ...options, print }))) process.exitCode = EXIT_MISTAKES;
    });
  rules
    .command('diff')
    .description(
      'say what changes from one document to another, or from what a cluster decides by to a document; exits with 1 if one of them is wrong',
    )
    .argument('<old>', 'the document in force, or with --node the document to come; - is standard input')
    .argument('[new]', 'the document to come; - is standard input')
    .option(NODE, 'a node of the cluster whose rules are compared, instead of a document', nodeOption)
    .option(...CA)
    .option(...JSON_OPTION)
    .action(async (first: string, second: string | undefined, options: { json?: true; node?: string }) => {
      const { node } = options;
      if (node === undefined && second === undefined)
        throw new ConfigError('<new>', 'is missing: give two documents, or one and --node');
      if (node !== undefined && second !== undefined)
        throw new ConfigError('--node', 'stands for the document in force: give one document with it');
      const { compareRules } = await import('./rules-command.ts');
      const { compareWithCluster } = await import('./rules-apply.ts');
      const isRead =
        node === undefined
          ? await compareRules({ oldFile: first, newFile: second ?? '' }, { ...options, print })
          : await compareWithCluster(first, { ...options, node, print });
      if (!isRead) process.exitCode = EXIT_MISTAKES;
    });
  rules
    .command('apply')
    .description(
      'check a document of rules, say what it changes, and have a cluster decide by it, on the machine of a node; exits with 1 if it is wrong, and with 75 if partitions without a leader decide by it later',
    )
    .argument('<file>', 'rules.yaml; - is standard input')
    .option(NODE, 'a node of the cluster', nodeOption, VIA_DEFAULT)
    .option(...CA)
    .option('--if-version <n>', 'only if this version is in force', integerOption)
    .option(...JSON_OPTION)
    .action(async (file: string, options: { json?: true; node: string; ifVersion?: number }) => {
      const { applyRules } = await import('./rules-apply.ts');
      process.exitCode = EXIT_OF_APPLY[await applyRules(file, { ...options, print })];
    });
}
