/**
 * Changes the rules: checks a change, hands it to group 0, and acknowledges it when every partition has it. Also
 * hands the rules of group 0 to the partitions on this node. Partitions decide by the rules in their own logs.
 */
import type { ChangeDone, ChangeFailure, ChangeRefused } from '../api/cluster-change.ts';
import type { RulesChange, RulesInForce } from '../api/rules-change.ts';
import { checkHorizon, ConfigError, type Timing } from '../config/config.ts';
import { InvalidRuleError, type RuleTable, validateRuleTable } from '../limiter/rules.ts';
import type { MetaChange, MetaState } from '../meta/cluster-state.ts';
import type { NodeReport } from '../wire/node-report.ts';
import { matchingForm } from '../rules/matching-form.ts';
import { nativeForm } from '../rules/native-form.ts';
import type { RuleDefinition } from '../rules/rule-definition.ts';
import { definitionsOfTable } from '../rules/limiter-rules.ts';
import { AwaitedChanges } from './awaited-changes.ts';
import { readDocument, readRuleOfDocument, readRuleOfTable } from './rules-document.ts';

type AskedChange = Extract<MetaChange, { readonly type: 'rules' }>;

interface Replica {
  readonly ruleTable: RuleTable | undefined;
  wantRules(table: RuleTable): void;
}

/** What `RulesChanges` needs. */
export interface RulesChangesInit {
  readonly core: {
    /** The replicas on this node, by partition. */
    readonly partitions: ReadonlyMap<number, Replica>;
    readonly meta: { readonly state: MetaState | undefined };
  };
  readonly partitionCount: number;
  readonly timing: Timing;
  readonly change: (change: MetaChange, done: ChangeDone) => void;
}

/** How often the rules of group 0 are handed to the partitions again. */
const HAND_ON_TICKS = 100;

/** The rules, as one node changes and spreads them. */
export class RulesChanges {
  readonly #init: RulesChangesInit;
  /** By partition: the newest rule version that a replica on another node has applied. */
  readonly #heard = new Map<number, number>();
  readonly #awaited = new AwaitedChanges();
  #ticks = 0;
  /** Cache of `inForce`, with its table. */
  #ofDocument: { readonly table: RuleTable; readonly rules: RulesInForce } | undefined;

  constructor(init: RulesChangesInit) {
    this.#init = init;
  }

  /**
   * The rules that all partitions have, or will have as soon as their logs contain them. Undefined: none are known
   * yet.
   */
  get newest(): RuleTable | undefined {
    return this.#init.core.meta.state?.rules;
  }

  /** The same, with the definitions and the document they were made of. */
  get inForce(): RulesInForce | undefined {
    const { newest } = this;
    const { definitions, document } = this.#init.core.meta.state ?? {};
    if (newest === undefined || definitions === undefined) return newest;
    // Cached, as every request for the rules reads it and a document may be long. A table belongs to one document.
    if (this.#ofDocument?.table !== newest) {
      const parsed = JSON.parse(definitions) as readonly unknown[];
      const rules = { ...newest, definitions: parsed, ...(document !== undefined && { document }) };
      this.#ofDocument = { table: newest, rules };
    }
    return this.#ofDocument.rules;
  }

  /** One rule of the document in force, or of the table, in the form in which a change may contain it. */
  oneInForce(id: string): { readonly version: number; readonly body: unknown } | undefined {
    const { inForce } = this;
    if (inForce === undefined) return undefined;
    const { version, rules, definitions } = inForce;
    if (definitions === undefined) return { version, body: rules.find((rule) => rule.id === id) };
    const definition = (definitions as readonly RuleDefinition[]).find((rule) => rule.id === id);
    return { version, body: definition && (nativeForm(definition) ?? definition) };
  }

  /**
   * Changes the rules. @param done called once, when all partitions have them, or after a few seconds; never if
   * this process ends before
   */
  change(change: RulesChange, done: ChangeDone): void {
    const { table, ifVersion } = change;
    const { newest } = this;
    const fail = (reason: ChangeFailure): void => done({ ok: false, reason });
    if (newest === undefined)
      return done({ ok: false, reason: 'notLeader', message: 'no rules are in force yet; ask again' });
    if (ifVersion !== undefined && ifVersion !== newest.version) return fail('rulesChanged');
    if (this.#awaited.isFull) return fail('overloaded');
    const version = newest.version + 1;
    const read = this.#read(change, newest);
    if ('ok' in read) return done(read);
    const { rules = table.rules, definitions, document } = read;
    const checked = checkedTable({ ...optionsOf(newest), ...table, rules, version }, this.#init.timing);
    if (!('version' in checked)) return done(checked);
    const asked = {
      type: 'rules',
      table: checked,
      base: newest.version,
      ...(definitions && { definitions }),
      ...(document !== undefined && { document }),
      ...this.#matchedBefore(checked, definitions),
    } as const;
    this.#init.change(asked, (result) => {
      if (!result.ok) return done(result);
      const pending = (): number[] => this.#pendingAt(checked);
      this.#awaited.add({ made: result, pending, done });
    });
  }

  /** If the new rules match requests differently, the matching part of the old ones is kept for retries. */
  #matchedBefore(table: RuleTable, definitions: string | undefined): Pick<AskedChange, 'matchedBefore'> {
    const { state } = this.#init.core.meta;
    if (state === undefined) return {};
    const before = matchingForm(definitionsOf(state.rules, state.definitions));
    return before === matchingForm(definitionsOf(table, definitions)) ? {} : { matchedBefore: before };
  }

  #read({ document, rule }: RulesChange, { rules }: RuleTable): ReturnType<typeof readRuleOfTable> {
    if (document !== undefined) return readDocument(document);
    if (rule === undefined) return {};
    const { definitions, document: text } = this.inForce ?? {};
    if (definitions === undefined) return readRuleOfTable(rule, rules);
    return readRuleOfDocument(rule, definitions as readonly RuleDefinition[], text);
  }

  /**
   * Hands the rules to the partitions; call it when the state of group 0 has changed. Leaders propose rules that
   * are newer than theirs.
   */
  handOn(): void {
    const rules = this.newest;
    if (rules === undefined) return;
    for (const replica of this.#init.core.partitions.values()) replica.wantRules(rules);
  }

  /** Takes the report of another node. */
  heard({ partitions }: NodeReport): void {
    for (const { partition, rulesVersion } of partitions)
      if (rulesVersion > (this.#heard.get(partition) ?? 0)) this.#heard.set(partition, rulesVersion);
  }

  /** Call once per tick. */
  tick(): void {
    this.#ticks += 1;
    // Repeat it, as a proposal that was refused is not repeated elsewhere.
    if (this.#ticks % HAND_ON_TICKS === 0) this.handOn();
    this.#awaited.tick();
  }

  get #partitions(): number[] {
    return Array.from({ length: this.#init.partitionCount }, (_, partition) => partition);
  }

  /**
   * The newest rule version that a replica of the partition is known to have applied, here or elsewhere; 0: none.
   */
  #appliedIn(partition: number): number {
    const here = this.#init.core.partitions.get(partition)?.ruleTable?.version ?? 0;
    return Math.max(here, this.#heard.get(partition) ?? 0);
  }

  /**
   * The partitions whose log is not known to contain this table or a later one. One replica that has applied it is
   * enough: then it is committed, and every later grant comes after it in the log.
   */
  #pendingAt(table: RuleTable): number[] {
    return this.#partitions.filter((partition) => this.#appliedIn(partition) < table.version);
  }
}

/** Options that a change does not mention stay as they are; the rules themselves must be given. */
function optionsOf({
  requestIdHorizonMillis,
  clockDriftPpm,
  partitionBytesMax,
}: RuleTable): Partial<RuleTable> {
  return { requestIdHorizonMillis, clockDriftPpm, partitionBytesMax };
}

function checkedTable(table: Readonly<Record<string, unknown>>, timing: Timing): RuleTable | ChangeRefused {
  try {
    const checked = validateRuleTable(table);
    checkHorizon(checked, timing);
    return checked;
  } catch (error) {
    if (!(error instanceof InvalidRuleError || error instanceof ConfigError)) throw error;
    const field = error.field.replace(/^rules\./, '');
    return { ok: false, reason: 'invalid', field, message: error.message };
  }
}

/** @param text definitions as JSON; undefined: the rules were given as a table */
function definitionsOf({ rules }: RuleTable, text: string | undefined): readonly RuleDefinition[] {
  return text === undefined ? definitionsOfTable(rules) : (JSON.parse(text) as readonly RuleDefinition[]);
}
