/**
 * Finds rules for descriptors in an order, in a tree. On each level it takes the exact value, else the first
 * matching pattern of the document, else the key without a value; it never backtracks. Only a rule at the depth of
 * the last descriptor applies. (This is the matching of envoyproxy/ratelimit.)
 */
import type { PathStep, RuleDefinition } from './rule-definition.ts';
import { isPattern, PatternIndex } from './value-pattern.ts';

/** One descriptor of a list. */
export interface DescriptorEntry {
  readonly key: string;
  readonly value: string;
}

/** The rule for a list of descriptors. */
export interface PathMatch {
  readonly rule: RuleDefinition;
  /** Names and values that the rule counts by. */
  readonly counted: readonly (readonly [string, string])[];
}

class Level {
  readonly isCounted: boolean;
  /** Place among the patterns of the document. */
  readonly order: number;
  rule: RuleDefinition | undefined;
  readonly #below = new Map<string, Branches>();

  constructor(isCounted: boolean, order: number) {
    this.isCounted = isCounted;
    this.order = order;
  }

  /** The level below for this step; created if it does not exist. */
  entered(step: PathStep, order: number): Level {
    let branches = this.#below.get(step.name);
    if (branches === undefined) {
      branches = { exact: new Map(), patterns: new PatternIndex(), byPattern: new Map(), any: undefined };
      this.#below.set(step.name, branches);
    }
    const { value } = step;
    if (value === undefined) return (branches.any ??= new Level(step.isCounted, order));
    const known = isPattern(value) ? branches.byPattern : branches.exact;
    let level = known.get(value);
    if (level === undefined) {
      level = new Level(step.isCounted, order);
      known.set(value, level);
      if (isPattern(value)) branches.patterns.add(value, level);
    }
    return level;
  }

  below({ key, value }: DescriptorEntry): Level | undefined {
    const branches = this.#below.get(key);
    if (branches === undefined) return undefined;
    const exact = branches.exact.get(value);
    if (exact !== undefined) return exact;
    let first: Level | undefined;
    branches.patterns.each(value, (level) => {
      if (first === undefined || level.order < first.order) first = level;
    });
    return first ?? branches.any;
  }
}

interface Branches {
  readonly exact: Map<string, Level>;
  readonly patterns: PatternIndex<Level>;
  readonly byPattern: Map<string, Level>;
  any: Level | undefined;
}

/** The rules by path of one rule set. */
export class PathIndex {
  readonly #domains = new Map<string, Level>();

  /** @param definitions rules of other kinds are ignored */
  constructor(definitions: readonly RuleDefinition[]) {
    for (const [order, rule] of definitions.entries()) {
      const { scope } = rule;
      if (scope.kind !== 'path') continue;
      let level = this.#domains.get(scope.domain);
      if (level === undefined) {
        level = new Level(false, 0);
        this.#domains.set(scope.domain, level);
      }
      for (const step of scope.steps) level = level.entered(step, order);
      level.rule ??= rule;
    }
  }

  /** The rule for a list of descriptors, if there is one. */
  find(domain: string, entries: readonly DescriptorEntry[]): PathMatch | undefined {
    let level = this.#domains.get(domain);
    const counted: (readonly [string, string])[] = [];
    for (const entry of entries) {
      level = level?.below(entry);
      if (level === undefined) return undefined;
      if (level.isCounted) counted.push([entry.key, entry.value]);
    }
    return level?.rule && { rule: level.rule, counted };
  }
}
