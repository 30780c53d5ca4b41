/**
 * Changes of the rules that this node was asked for: checked, handed to group 0, and answered when every partition decides by
 * them. And what group 0 says, handed to the partitions of this node. The partitions decide by what is in their own logs.
 */
import {
  RULES_CHANGE_FAILURES,
  type RulesChange,
  type RulesChangeFailure,
  type RulesChangeResult,
  type RulesInForce,
} from '../api/rules-change.ts';
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import { checkHorizon, ConfigError, type Timing } from '../config/config.ts';
import { InvalidRuleError, type RuleTable, validateRuleTable } from '../limiter/rules.ts';
import type { MetaState } from '../meta/meta-state.ts';
import type { ClusterChange, ClusterChangeResult } from '../wire/cluster-changes.ts';
import type { NodeReport, PartitionReport } from '../wire/node-report.ts';
import { nativeForm } from '../rules/native-form.ts';
import type { RuleDefinition } from '../rules/rule-definition.ts';
import { readDocument, readRuleOfDocument, readRuleOfTable } from './rules-document.ts';
import { digestOfRules } from './rules-digest.ts';
import { rulesInForce } from './rules-in-force.ts';

interface Replica {
  readonly ruleTable: RuleTable | undefined;
  wantRules(table: RuleTable): void;
}

export interface RulesChangesInit {
  readonly core: {
    /** The replicas of partitions on this node, by partition. */
    readonly partitions: ReadonlyMap<number, Replica>;
    readonly meta: { readonly state: MetaState | undefined; readonly leader: NodeId };
  };
  readonly partitionCount: number;
  readonly timing: Timing;
  /** Of the rules in the file of this node. */
  readonly fileVersion: number;
  readonly change: (change: ClusterChange, done: (result: ClusterChangeResult) => void) => void;
}

type Done = (result: RulesChangeResult) => void;

/** Which rules a replica has applied. */
type Applied = Pick<PartitionReport, 'rulesVersion' | 'rulesDigest'>;

interface Waiting {
  readonly table: RuleTable;
  readonly untilTick: number;
  readonly done: Done;
}

const NOTHING_APPLIED: Applied = { rulesVersion: 0, rulesDigest: '' };
/** A partition that has no leader for so long gets the rules later. */
const PATIENCE_TICKS = 500;
/** How often it is looked for partitions that took other rules of the same version from a file. */
const LOOK_TICKS = 100;
/**
 * After so many looks, a minute, it is not that this node hears late of a change. Until then who asks by descriptors is told to
 * ask again, which at another node helps; after it, that this can't be asked.
 */
const NEWER_LOOKS_MAX = 60;
/** What group 0 lets wait, too. */
const WAITING_MAX = 64;

export class RulesChanges {
  readonly #init: RulesChangesInit;
  /** By partition: the newest that a replica on another node has applied, from whatever file they came. */
  readonly #heard = new Map<number, Applied>();
  /** For so many looks partitions here had these rules, newer than those of group 0. */
  #newerLooks = 0;
  #newerVersion = 0;
  #waiting: Waiting[] = [];
  #ticks = 0;
  /** The table that was told last with the document it was made of. */
  #ofDocument: { readonly table: RuleTable; readonly rules: RulesInForce } | undefined;

  constructor(init: RulesChangesInit) {
    this.#init = init;
  }

  /** The newest table that a partition here has applied, or group 0 asks for. */
  get newest(): RuleTable | undefined {
    const { partitions } = this.#init.core;
    const applied = rulesInForce(partitions.values());
    const wanted = this.#asked;
    // Of two with one version, that of group 0 will hold.
    return (wanted?.version ?? 0) >= (applied?.version ?? 0) ? wanted : applied;
  }

  /** The same, with which requests they are for. */
  get inForce(): RulesInForce | undefined {
    const { newest } = this;
    const { definitions } = this.#init.core.meta.state ?? {};
    if (newest === undefined || definitions === undefined || newest !== this.#asked) return newest;
    // Every look asks, and a document may be long. A table is of one document.
    if (this.#ofDocument?.table !== newest) {
      const rules = { ...newest, definitions: JSON.parse(definitions) as readonly unknown[] };
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

  /**
   * What group 0 says, as far as it holds: a file of a greater version brought rules of its own, which say nothing of the requests
   * they are for.
   */
  get known(): MetaState | undefined {
    const { state } = this.#init.core.meta;
    if (state?.definitions === undefined || this.#versionOfOtherFile === 0) return state;
    const { definitions: _, ...rest } = state;
    return rest;
  }

  /**
   * Of the rules by which the default one decides requests that name none, as no document says what these are under. A version that this
   * node has not heard of long enough may be that of one. Undefined: a document is in force, or this node knows of nothing yet.
   */
  get versionWithoutDocument(): number | undefined {
    const { known } = this;
    if (known === undefined || known.definitions !== undefined) return undefined;
    return Math.max(known.rules?.version ?? 0, this.#init.fileVersion, this.#versionOfOtherFile);
  }

  #lookWhoIsNewer(): void {
    const version = this.#newerApplied;
    // Who hears of no leader hears of no change.
    const isHeard = this.#init.core.meta.leader !== NO_NODE;
    const isSame = version !== 0 && version === this.#newerVersion;
    this.#newerLooks = isSame && isHeard ? this.#newerLooks + 1 : 0;
    this.#newerVersion = version;
  }

  /** Of the rules that a file of another node brought; 0: of none. */
  get #versionOfOtherFile(): number {
    // It may have heard since it looked.
    const isLong = this.#newerLooks >= NEWER_LOOKS_MAX && this.#newerApplied === this.#newerVersion;
    return isLong ? this.#newerVersion : 0;
  }

  /** Of the rules of a partition here that group 0, as far as it is known here, does not ask for; 0: of none. */
  get #newerApplied(): number {
    const applied = rulesInForce(this.#init.core.partitions.values())?.version ?? 0;
    return applied > (this.#asked?.version ?? 0) ? applied : 0;
  }

  /** What group 0 wants the partitions to decide by. */
  get #asked(): RuleTable | undefined {
    return this.#init.core.meta.state?.rules;
  }

  /** @param done told once, when all partitions decide by them or after a few seconds; never if this process ends before */
  change(change: RulesChange, done: Done): void {
    const { table, ifVersion } = change;
    const { newest } = this;
    const fail = (reason: RulesChangeFailure): void => done({ ok: false, reason });
    if (newest === undefined) return fail('notLeader');
    if (ifVersion !== undefined && ifVersion !== newest.version) return fail('rulesChanged');
    if (this.#waiting.length >= WAITING_MAX) return fail('overloaded');
    const version = this.#versionAbove(newest);
    const read = this.#read(change, newest);
    if ('ok' in read) return done(read);
    const { rules = table.rules, definitions } = read;
    const checked = checkedTable({ ...optionsOf(newest), ...table, rules, version }, this.#init.timing);
    if (!('version' in checked)) return done(checked);
    const base = this.#asked?.version ?? 0;
    const asked = { type: 'rules', table: checked, base, ...(definitions && { definitions }) } as const;
    this.#init.change(asked, (result) => {
      if (result.ok) this.#wait(checked, done);
      else fail(isKnown(result.reason) ? result.reason : 'unknownOutcome');
    });
  }

  #read({ document, rule }: RulesChange, { rules }: RuleTable): ReturnType<typeof readRuleOfTable> {
    if (document !== undefined) return readDocument(document);
    if (rule === undefined) return {};
    const { definitions } = this.inForce ?? {};
    if (definitions === undefined) return readRuleOfTable(rule, rules);
    return readRuleOfDocument(rule, definitions as readonly RuleDefinition[]);
  }

  /** To be called when group 0 has another state. Whatever is newer than what a partition has is proposed by its leader. */
  handOn(): void {
    const rules = this.#asked;
    if (rules === undefined) return;
    for (const replica of this.#init.core.partitions.values()) replica.wantRules(rules);
  }

  /** What another node says of its replicas. */
  heard({ partitions }: NodeReport): void {
    for (const { partition, rulesVersion, rulesDigest } of partitions)
      if (rulesVersion > (this.#heard.get(partition)?.rulesVersion ?? 0))
        this.#heard.set(partition, { rulesVersion, rulesDigest });
  }

  tick(): void {
    this.#ticks += 1;
    if (this.#ticks % LOOK_TICKS === 0) {
      this.#lookWhoIsNewer();
      this.#overruleFiles();
      // Where a proposal was refused nobody else asks again.
      this.handOn();
    }
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const each of waiting) {
      const pending = this.#pendingAt(each.table);
      if (pending.length === 0 || this.#ticks >= each.untilTick)
        each.done({ ok: true, version: each.table.version, pending });
      else this.#waiting.push(each);
    }
  }

  /**
   * A file that was changed at the same time may have brought other rules of the same version into some partitions. Group 0
   * says what holds: it asks for the same again, under a version above both.
   */
  #overruleFiles(): void {
    const asked = this.#asked;
    if (asked === undefined) return;
    const isOther = this.#partitions.some((partition) => {
      const applied = this.#appliedIn(partition);
      return applied?.rulesVersion === asked.version && applied.rulesDigest !== digestOfRules(asked);
    });
    if (!isOther) return;
    const version = this.#versionAbove(asked);
    const { definitions } = this.#init.core.meta.state ?? {};
    const table = { ...asked, version };
    const again = { type: 'rules', table, base: asked.version, ...(definitions && { definitions }) } as const;
    this.#init.change(again, () => undefined);
  }

  /** Newer than `table`, and than all that is known to be applied anywhere. */
  #versionAbove({ version }: RuleTable): number {
    return Math.max(version, ...[...this.#heard.values()].map(({ rulesVersion }) => rulesVersion)) + 1;
  }

  get #partitions(): number[] {
    return Array.from({ length: this.#init.partitionCount }, (_, partition) => partition);
  }

  /**
   * The newest rules that a replica of the partition is known to have applied, here or elsewhere. Within a partition a version
   * is one table for all: it is in the log.
   */
  #appliedIn(partition: number): Applied | undefined {
    const heard = this.#heard.get(partition);
    const here = this.#init.core.partitions.get(partition)?.ruleTable;
    if (here === undefined || here.version < (heard?.rulesVersion ?? 0)) return heard;
    return { rulesVersion: here.version, rulesDigest: digestOfRules(here) };
  }

  #wait(table: RuleTable, done: Done): void {
    this.#waiting.push({ table, done, untilTick: this.#ticks + PATIENCE_TICKS });
  }

  /**
   * The partitions of which nobody has said yet that their log holds this table, or a later one. One replica that has
   * applied it is enough: it is committed, so whatever is granted from now on stands behind it.
   */
  #pendingAt(table: RuleTable): number[] {
    const digest = digestOfRules(table);
    return this.#partitions.filter((partition) => {
      const { rulesVersion, rulesDigest } = this.#appliedIn(partition) ?? NOTHING_APPLIED;
      return rulesVersion === table.version ? rulesDigest !== digest : rulesVersion < table.version;
    });
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

function checkedTable(
  table: Readonly<Record<string, unknown>>,
  timing: Timing,
): RuleTable | Extract<RulesChangeResult, { reason: 'invalid' }> {
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

function isKnown(reason: string): reason is RulesChangeFailure {
  return reason in RULES_CHANGE_FAILURES;
}
