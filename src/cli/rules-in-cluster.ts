/** The rules that a running cluster decides by, read and replaced over HTTP at one of its nodes. It reads no file and prints nothing. */
import type { RuleDefinition } from '../rules/rule-definition.ts';
import { answerOf, answerOfChange } from './answer-of.ts';
import { askNode, ClusterCommandError, type NodeBody } from './ask-node.ts';

const READ_MILLIS_MAX = 5_000;
/** The node waits some seconds for partitions without a leader before it answers. */
const CHANGE_MILLIS_MAX = 30_000;
const PATH = '/v1/rules';

/** What a node knows to be in force. */
export interface KnownRules {
  readonly version: number;
  /** Undefined: they did not come as a document. */
  readonly definitions: readonly RuleDefinition[] | undefined;
  /** What the limiter keeps, one for each window. */
  readonly rules: readonly KnownRule[];
}

interface KnownRule {
  readonly id: string;
  readonly limit?: number;
  readonly windowMillis?: number;
}

/** What became of a change that was accepted. */
export interface AppliedRules {
  readonly version: number;
  /** Partitions that do not decide by them yet, and will as soon as they have a leader. */
  readonly pending: readonly number[];
}

/** @throws ClusterCommandError if they cannot be read at `node`, a URL */
export async function readKnownRules(node: string): Promise<KnownRules> {
  const answer = await askNode(new URL(PATH, node), READ_MILLIS_MAX);
  return knownRulesIn(answerOf(answer, node)) ?? noNode(node);
}

function noNode(node: string): never {
  throw new ClusterCommandError(`${node} is no node of a cluster`);
}

/**
 * Replaces them, if `ifVersion` is still in force.
 *
 * @param document in UTF-8, at most `RULES_DOCUMENT_BYTES_MAX`
 * @throws ClusterCommandError `unfinished` if they may have been replaced
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

/** Whatever answers at an address may say anything. */
function knownRulesIn({ version, rules, definitions }: NodeBody): KnownRules | undefined {
  if (typeof version !== 'number' || !haveIds(rules)) return undefined;
  if (definitions === undefined) return { version, definitions: undefined, rules };
  if (!haveIds(definitions)) return undefined;
  // As a node of this version had read it from a document.
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
