/**
 * A short text for all that a rule table says. Versions do not tell tables apart: files that were edited at the same time, and a
 * change that group 0 made meanwhile, may bring two of one version. It only tells.
 */
import { createHash } from 'node:crypto';
import { encodeRules } from '../limiter/log/command.ts';
import type { RuleTable } from '../limiter/rules.ts';

const DIGEST_CHARACTERS = 16;
/** A table may be long, and every replica has one of its own: each is looked at once. */
const known = new WeakMap<RuleTable, string>();

/** 16 hexadecimal digits, the same wherever a table says the same. */
export function digestOfRules(table: RuleTable): string {
  const before = known.get(table);
  if (before !== undefined) return before;
  const digest = createHash('sha256').update(encodeRules(table)).digest('hex').slice(0, DIGEST_CHARACTERS);
  known.set(table, digest);
  return digest;
}
