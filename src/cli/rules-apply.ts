/**
 * The commands for the rules of a running cluster: `quorate rules apply` checks a document, prints what it changes, and
 * replaces the rules. The comparison with a cluster changes nothing, and neither does `quorate rules show`.
 */
import type { Rule } from '../api/rule.ts';
import { documentText } from '../rules/native-form.ts';
import { printable } from '../rules/mistakes.ts';
import { definitionsOfTable } from '../rules/limiter-rules.ts';
import { ruleInWords, number } from '../rules/words.ts';
import { type KnownRules, readKnownRules, type AppliedRules, sendRules } from './rules-in-cluster.ts';
import { RULES_DOCUMENT_BYTES_MAX } from '../api/rules-change.ts';
import { diffRules, type RuleChange } from '../rules/diff.ts';
import { readRules } from '../rules/read-rules.ts';
import type { RuleDefinition } from '../rules/rule-definition.ts';
import { ClusterCommandError } from './ask-node.ts';
import { printChanges, type RulesCommandOptions } from './rules-command.ts';
import { bytesOf, counted, printFindings } from './rules-file.ts';

const ORDERED_NOTE =
  'note: rules of nested descriptors are for gateways, which ask over gRPC or POST /json; they limit no other requests';

/** Which cluster to compare with. */
export interface ClusterRulesOptions extends RulesCommandOptions {
  /** The URL of a node. */
  readonly node: string;
}

/** The cluster to change, and how. */
export interface ApplyRulesOptions extends ClusterRulesOptions {
  /** Apply only if this version is in force. Absent: the version that the changes were compared with. */
  readonly ifVersion?: number;
}

/** `pending`: accepted, but not in force in every partition yet. */
export type ApplyOutcome = 'applied' | 'pending' | 'mistakes';

interface CheckedDocument {
  readonly bytes: Uint8Array;
  readonly definitions: readonly RuleDefinition[];
}

/**
 * @throws ClusterCommandError if the cluster cannot be asked, or refuses. Nothing was changed unless the message says
 *   so.
 */
export async function applyRules(file: string, options: ApplyRulesOptions): Promise<ApplyOutcome> {
  const { node, ifVersion, json, print } = options;
  const document = await checkedDocument(file, options);
  if (document === undefined) return 'mistakes';
  const known = await readKnownRules(node);
  if (ifVersion !== undefined && ifVersion !== known.version)
    throw new ClusterCommandError(
      `${node} uses version ${known.version} of the rules, not ${ifVersion}; nothing was changed`,
    );
  const changes = changesTo(document, known);
  if (json !== true) printDifference(changes, known, options);
  const applied = await sendRules(node, { document: document.bytes, ifVersion: known.version });
  if (json === true) print(JSON.stringify({ ok: true, from: known.version, changes, ...applied }, null, 2));
  else printApplied(document.definitions, applied, print);
  return applied.pending.length === 0 ? 'applied' : 'pending';
}

/**
 * Prints what a document would change, and returns true. If the document is wrong, prints all mistakes and returns
 * false.
 */
export async function compareWithCluster(file: string, options: ClusterRulesOptions): Promise<boolean> {
  const document = await checkedDocument(file, options);
  if (document === undefined) return false;
  const known = await readKnownRules(options.node);
  const changes = changesTo(document, known);
  if (options.json === true)
    options.print(JSON.stringify({ ok: true, from: known.version, changes }, null, 2));
  else printDifference(changes, known, options);
  return true;
}

/** Returns undefined if the document is wrong; its mistakes are printed then. */
async function checkedDocument(
  file: string,
  { json, print }: RulesCommandOptions,
): Promise<CheckedDocument | undefined> {
  const bytes = await bytesOf(file);
  const read = boundedForCluster(bytes, readRules(bytes));
  if (read.kind === 'mistakes' && json === true)
    print(JSON.stringify({ ok: false, files: [{ file, ...read }] }, null, 2));
  else if (json !== true) printFindings(file, read, print);
  return read.kind === 'mistakes' ? undefined : { bytes, definitions: read.definitions };
}

/** Adds a mistake if the document is too long for a cluster. Files may be longer. */
function boundedForCluster(
  { length }: Uint8Array,
  read: ReturnType<typeof readRules>,
): ReturnType<typeof readRules> {
  if (read.kind === 'mistakes' || length <= RULES_DOCUMENT_BYTES_MAX) return read;
  const message = `a cluster takes documents of at most ${RULES_DOCUMENT_BYTES_MAX} bytes, and this one has ${length}`;
  const mistakes = [{ line: 1, column: 1, message }];
  return { kind: 'mistakes', mistakes, isComplete: true, notes: read.notes };
}

/** Rules that were not set with a document are a table, such as the rule `default` of a new cluster. */
function changesTo({ definitions }: CheckedDocument, known: KnownRules): readonly RuleChange[] {
  // A node of this version has checked them.
  return diffRules(known.definitions ?? definitionsOfTable(known.rules as readonly Rule[]), definitions);
}

function printDifference(
  changes: readonly RuleChange[],
  { version, definitions }: KnownRules,
  { node, print }: ClusterRulesOptions,
): void {
  const without = definitions === undefined ? ', which were not set with a document' : '';
  print(printable(`${node} uses version ${version} of the rules${without}`));
  printChanges(changes, print);
}

function printApplied(
  definitions: readonly RuleDefinition[],
  { version, pending }: AppliedRules,
  print: (line: string) => void,
): void {
  if (definitions.some(({ scope }) => scope.kind === 'path')) print(ORDERED_NOTE);
  if (pending.length === 0) print(`version ${version} is in force: every partition uses it`);
  else
    print(
      `version ${version} is accepted; ${counted(pending.length, 'partition')} (${pending.map(number).join(', ')}) will use it when they have a leader`,
    );
}

/**
 * Prints the rules as a document that can be edited and applied. @throws ClusterCommandError if the cluster cannot be
 * asked
 */
export async function showRules({ node, json, print }: ClusterRulesOptions): Promise<void> {
  const known = await readKnownRules(node);
  if (json === true) {
    const { version, definitions, rules } = known;
    print(JSON.stringify({ version, ...(definitions && { definitions }), rules }, null, 2));
    return;
  }
  print(`# version ${known.version} of the rules, as ${node} says`);
  for (const line of linesOf(known)) print(printable(line));
}

/** Rules without a document are printed as comments. */
function linesOf({ definitions, rules }: KnownRules): string[] {
  if (definitions === undefined)
    return [
      '# They did not come as a document: `quorate rules apply rules.yaml` puts one in their place.',
      ...rules.map(({ id, limit, windowMillis }) => `# ${id}: ${limit} per ${windowMillis} ms`),
    ];
  const text = documentText(definitions);
  if (text !== undefined) return text.trimEnd().split('\n');
  return [
    '# Some are of nested descriptors, as envoyproxy/ratelimit has them: keep the file that they came from.',
    ...definitions.map((rule) => `# ${rule.id}: ${ruleInWords(rule)}`),
  ];
}
