/**
 * Changes of the rules that this node was asked for: checked, handed to group 0, and answered when every partition decides by
 * them. And what group 0 says, handed to the partitions of this node. The partitions decide by what is in their own logs.
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
import { definitionsOfTable } from '../rules/table-form.ts';
import { AwaitedChanges } from './awaited-changes.ts';
import { readDocument, readRuleOfDocument, readRuleOfTable } from './rules-document.ts';

type AskedChange = Extract<MetaChange, { readonly type: 'rules' }>;

interface Replica {
  readonly ruleTable: RuleTable | undefined;
  wantRules(table: RuleTable): void;
}

export interface RulesChangesInit {
  readonly core: {
    /** The replicas of partitions on this node, by partition. */
    readonly partitions: ReadonlyMap<number, Replica>;
    readonly meta: { readonly state: MetaState | undefined };
  };
  readonly partitionCount: number;
  readonly timing: Timing;
  readonly change: (change: MetaChange, done: ChangeDone) => void;
}

/** How often what group 0 asks for is handed on again. */
const HAND_ON_TICKS = 100;

export class RulesChanges {
  readonly #init: RulesChangesInit;
  /** By partition: the newest version that a replica on another node has applied. */
  readonly #heard = new Map<number, number>();
  readonly #awaited = new AwaitedChanges();
  #ticks = 0;
  /** The table that was told last with the document it was made of. */
  #ofDocument: { readonly table: RuleTable; readonly rules: RulesInForce } | undefined;

  constructor(init: RulesChangesInit) {
    this.#init = init;
  }

  /** What all partitions decide by, or will as soon as that has reached their logs. Undefined: nothing is known yet. */
  get newest(): RuleTable | undefined {
    return this.#init.core.meta.state?.rules;
  }

  /** The same, with which requests they are for. */
  get inForce(): RulesInForce | undefined {
    const { newest } = this;
    const { definitions, document } = this.#init.core.meta.state ?? {};
    if (newest === undefined || definitions === undefined) return newest;
    // Every look asks, and a document may be long. A table is of one document.
    if (this.#ofDocument?.table !== newest) {
      const parsed = JSON.parse(definitions) as readonly unknown[];
      const rules = { ...newest, definitions: parsed, ...(document !== undefined && { document }) };
      this.#ofDocument = { table: newest, rules };
    }
    return this.#ofDocument.rules;
  }

  /** Of the document in force, or of the table if there is none; in the form in which a change may give it. */
  oneInForce(id: string): { readonly version: number; readonly body: unknown } | undefined {
    const { inForce } = this;
    if (inForce === undefined) return undefined;
    const { version, rules, definitions } = inForce;
    if (definitions === undefined) return { version, body: rules.find((rule) => rule.id === id) };
    const definition = (definitions as readonly RuleDefinition[]).find((rule) => rule.id === id);
    return { version, body: definition && (nativeForm(definition) ?? definition) };
  }

  /** @param done told once, when all partitions decide by them or after a few seconds; never if this process ends before */
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

  /** Where other rules match requests another way, those that they replace are remembered for retries. */
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

  /** To be called when group 0 has another state. Whatever is newer than what a partition has is proposed by its leader. */
  handOn(): void {
    const rules = this.newest;
    if (rules === undefined) return;
    for (const replica of this.#init.core.partitions.values()) replica.wantRules(rules);
  }

  /** What another node says of its replicas. */
  heard({ partitions }: NodeReport): void {
    for (const { partition, rulesVersion } of partitions)
      if (rulesVersion > (this.#heard.get(partition) ?? 0)) this.#heard.set(partition, rulesVersion);
  }

  tick(): void {
    this.#ticks += 1;
    // Where a proposal was refused nobody else asks again.
    if (this.#ticks % HAND_ON_TICKS === 0) this.handOn();
    this.#awaited.tick();
  }

  get #partitions(): number[] {
    return Array.from({ length: this.#init.partitionCount }, (_, partition) => partition);
  }

  /** The newest rules that a replica of the partition is known to have applied, here or elsewhere; 0: none. */
  #appliedIn(partition: number): number {
    const here = this.#init.core.partitions.get(partition)?.ruleTable?.version ?? 0;
    return Math.max(here, this.#heard.get(partition) ?? 0);
  }

  /**
   * The partitions of which nobody has said yet that their log holds this table, or a later one. One replica that has
   * applied it is enough: it is committed, so whatever is granted from now on stands behind it.
   */
  #pendingAt(table: RuleTable): number[] {
    return this.#partitions.filter((partition) => this.#appliedIn(partition) < table.version);
  }
}

/** What a change does not say stays as it is; the rules themselves it must say. */
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

/** @param text in JSON; undefined: they were given as a table */
function definitionsOf({ rules }: RuleTable, text: string | undefined): readonly RuleDefinition[] {
  return text === undefined ? definitionsOfTable(rules) : (JSON.parse(text) as readonly RuleDefinition[]);
}
