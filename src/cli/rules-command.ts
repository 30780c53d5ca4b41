/** Checks documents of rules, and prints what changes from one to another. It only reads files, and asks no cluster. */
import { ConfigError } from '../config/config.ts';
import { RULES_MAX } from '../limiter/rules.ts';
import { diffRules, type RuleChange } from '../rules/diff.ts';
import { printable } from '../rules/mistakes.ts';
import { readRules } from '../rules/read-rules.ts';
import type { RuleDefinition } from '../rules/rule-definition.ts';
import { isForUnmatched } from '../rules/unmatched.ts';
import { number, ruleInWords } from '../rules/words.ts';
import { bytesOf, counted, printFindings, STDIN } from './rules-file.ts';

/** How to print. */
export interface RulesCommandOptions {
  readonly json?: true;
  readonly print: (line: string) => void;
}

/** Returns true if the document is correct. Prints all mistakes otherwise. */
export async function checkRules(file: string, { json, print }: RulesCommandOptions): Promise<boolean> {
  const read = readRules(await bytesOf(file));
  const isRight = read.kind === 'rules';
  if (json === true) {
    print(JSON.stringify({ file, ok: isRight, ...read }, null, 2));
    return isRight;
  }
  printFindings(file, read, print);
  if (!isRight) return false;
  const { definitions } = read;
  const windows = windowsOf(definitions);
  print(
    `${file}: ${counted(definitions.filter((rule) => !isForUnmatched(rule)).length, 'rule')}, ${counted(windows, 'window')}`,
  );
  for (const rule of definitions) print(printable(`  ${rule.id}: ${ruleInWords(rule)}`));
  if (windows > RULES_MAX) {
    print(`${file}: note: a cluster keeps at most ${number(RULES_MAX)} windows, and will refuse these`);
  }
  return true;
}

/**
 * Prints what changes from one document to another, and returns true. If one is wrong, prints all mistakes and returns
 * false.
 */
export async function compareRules(
  { oldFile, newFile }: { readonly oldFile: string; readonly newFile: string },
  { json, print }: RulesCommandOptions,
): Promise<boolean> {
  if (oldFile === STDIN && newFile === STDIN) throw new ConfigError(STDIN, 'can be read once; name a file');
  const before = readRules(await bytesOf(oldFile));
  const after = readRules(await bytesOf(newFile));
  if (before.kind === 'mistakes' || after.kind === 'mistakes') {
    if (json === true) {
      const files = [
        { file: oldFile, ...before },
        { file: newFile, ...after },
      ].filter(({ kind }) => kind === 'mistakes');
      print(JSON.stringify({ ok: false, files }, null, 2));
    } else {
      if (before.kind === 'mistakes') printFindings(oldFile, before, print);
      if (after.kind === 'mistakes') printFindings(newFile, after, print);
    }
    return false;
  }
  const changes = diffRules(before.definitions, after.definitions);
  if (json === true) print(JSON.stringify({ ok: true, changes }, null, 2));
  else printChanges(changes, print);
  return true;
}

/** Prints one line for each change. */
export function printChanges(changes: readonly RuleChange[], print: (line: string) => void): void {
  if (changes.length === 0) print('nothing changes');
  for (const change of changes) for (const line of changeLines(change)) print(printable(line));
}

function changeLines(change: RuleChange): string[] {
  if (change.kind !== 'changed') return [change.words];
  const fields = change.fields.map(({ field, before, after, binds }) => {
    const how = binds === 'alike' ? '' : ` (${binds})`;
    return `  ${field}: ${before} -> ${after}${how}`;
  });
  return [change.words, ...fields];
}

function windowsOf(definitions: readonly RuleDefinition[]): number {
  return definitions.reduce((sum, { windows }) => sum + windows.length, 0);
}
