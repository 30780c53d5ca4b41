/**
 * Reads and replaces the rules of a running cluster, over HTTP at one of its nodes. It reads no files and prints
 * nothing.
 */
import type { RuleDefinition } from '../rules/rule-definition.ts';
import { answerOf, answerOfChange } from './answer-of.ts';
import { askNode, ClusterCommandError, type NodeBody } from './ask-node.ts';

const READ_MILLIS_MAX = 5_000;
/** Longest time for the answer to a change. The node waits some seconds for partitions without a leader. */
const CHANGE_MILLIS_MAX = 30_000;
const PATH = '/v1/rules';

/** The rules in force, as a node knows them. */
export interface KnownRules {
  readonly version: number;
  /** Undefined: the rules were not set with a document. */
  readonly definitions: readonly RuleDefinition[] | undefined;
  /** The rules in the form of the limiter, one for each window. */
  readonly rules: readonly KnownRule[];
}

interface KnownRule {
  readonly id: string;
  readonly limit?: number;
  readonly windowMillis?: number;
}

/** The result of an accepted change. */
export interface AppliedRules {
  readonly version: number;
  /** Partitions that do not use the new rules yet. They will when they have a leader. */
  readonly pending: readonly number[];
}

/**
 * @param node a URL
 * @throws ClusterCommandError if the rules cannot be read
 */
export async function readKnownRules(node: string): Promise<KnownRules> {
  const answer = await askNode(new URL(PATH, node), READ_MILLIS_MAX);
  return knownRulesIn(answerOf(answer, node)) ?? noNode(node);
}

function noNode(node: string): never {
  throw new ClusterCommandError(`${node} is no node of a cluster`);
}

/**
 * Replaces the rules if version `ifVersion` is still in force.
 *
 * @param document in UTF-8, at most `RULES_DOCUMENT_BYTES_MAX`
 * @throws ClusterCommandError `unfinished` if the rules may have been replaced
 */
export async function sendRules(
  node: string,
  { document, ifVersion }: { readonly document: Uint8Array; readonly ifVersion: number },
): Promise<AppliedRules> {
  const answer = await askNode(new URL(PATH, node), CHANGE_MILLIS_MAX, {
    method: 'PUT',
    contentType: 'application/yaml',
    headers: { 'if-match': `"${ifVersion}"` },
    body: document,
  });
  const body = answerOfChange(answer, node, 'see with `quorate rules show` before you try again');
  return appliedRulesIn(body) ?? noNode(node);
}

/** Checks the form of the answer, because any program may answer at the address. */
function knownRulesIn({ version, rules, definitions }: NodeBody): KnownRules | undefined {
  if (typeof version !== 'number' || !haveIds(rules)) return undefined;
  if (definitions === undefined) return { version, definitions: undefined, rules };
  if (!haveIds(definitions)) return undefined;
  // A node of this version has parsed them from a document.
  return { version, definitions: definitions as readonly RuleDefinition[], rules };
}

function appliedRulesIn({ version, pending }: NodeBody): AppliedRules | undefined {
  if (typeof version !== 'number' || !Array.isArray(pending)) return undefined;
  return { version, pending: pending.filter((partition) => typeof partition === 'number') };
}

function haveIds(rules: unknown): rules is readonly { readonly id: string }[] {
  return (
    Array.isArray(rules) &&
    rules.every(
      (rule: unknown) =>
        typeof rule === 'object' && rule !== null && 'id' in rule && typeof rule.id === 'string',
    )
  );
}
