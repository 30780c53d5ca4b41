/**
 * The client that switches the rules of a cluster under test between two documents. Each change names the version that
 * it replaces, so an attempt that comes late finds another version and changes nothing. Each attempt is one event of
 * the history.
 */
import type { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { RandomBelow } from '../../raft/core-state.ts';
import type { Rule } from '../../src/api/rule.ts';
import { fieldsOf, numberOrNull } from './history.ts';
import { attempt, nowNanos, PATIENCE_MILLIS } from './http-attempt.ts';
import { endingOf } from './joint-attempts.ts';
import type { RulesChange } from './joint-history.ts';
import { documentAt, type Level, limitsAt } from './joint-rules.ts';

export interface RulesClientInit {
  readonly random: RandomBelow;
  readonly agent: Agent;
  readonly pick: () => Promise<{ readonly id: number; readonly port: number } | undefined>;
  readonly record: (event: RulesChange) => void;
  readonly deadlineMillis: number;
  readonly singleRules: readonly Rule[];
}

const PAUSE_MILLIS_MIN = 300;
const PAUSE_MILLIS_MAX = 2_000;
/** A node waits this long for partitions without a leader. */
const ANSWER_MILLIS_MAX = 5_000;
const AGAIN_MILLIS = 100;
const PATH = '/v1/rules';

export class RulesClient {
  readonly #init: RulesClientInit;
  #level: Level = 'high';
  /** The newest version in an answer. */
  #version = 0;

  constructor(init: RulesClientInit) {
    this.#init = init;
  }

  /** Tries until every partition decides by the document, or the time is over. Resolves with whether it worked. */
  async setWithin(level: Level, millis: number): Promise<boolean> {
    const untilMillis = performance.now() + millis;
    while ((await this.#set(level))?.status !== 200) {
      if (performance.now() >= untilMillis) return false;
      await delay(AGAIN_MILLIS);
    }
    return true;
  }

  async run(isActive: () => boolean): Promise<void> {
    while (isActive()) {
      await delay(PAUSE_MILLIS_MIN + this.#init.random(PAUSE_MILLIS_MAX - PAUSE_MILLIS_MIN));
      if (isActive()) await this.#set(this.#level === 'high' ? 'low' : 'high');
    }
  }

  /** One attempt. Undefined: no node answered the question for the version. */
  async #set(level: Level): Promise<RulesChange | undefined> {
    const { agent, pick, record, deadlineMillis, singleRules } = this.#init;
    const target = await pick();
    if (target === undefined) return undefined;
    if (this.#version === 0) await this.#learn();
    if (this.#version === 0) return undefined;
    const ifVersion = this.#version;
    const invokeNanos = nowNanos();
    const payload = Buffer.from(JSON.stringify({ document: documentAt(level, singleRules) }));
    const headers = { 'if-match': `"${ifVersion}"` };
    const patienceMillis = ANSWER_MILLIS_MAX + deadlineMillis + PATIENCE_MILLIS;
    const outcome = await attempt({
      agent,
      port: target.port,
      method: 'PUT',
      path: PATH,
      payload,
      headers,
      patienceMillis,
    });
    const asked = {
      op: 'rules',
      node: target.id,
      invokeNanos,
      completeNanos: nowNanos(),
      ifVersion,
      limits: limitsAt(level),
    } as const;
    let change: RulesChange;
    if (outcome.kind === 'broken') {
      const { code, sent } = outcome;
      change = { ...asked, status: 0, class: sent ? 'info' : 'fail', error: code, version: null };
    } else {
      const { status, body } = outcome;
      const isDone = status === 200 || status === 202;
      const ending = isDone ? ({ status, class: 'ok', error: null } as const) : endingOf(status, body);
      change = { ...asked, ...ending, version: isDone ? numberOrNull(fieldsOf(body)['version']) : null };
    }
    record(change);
    if (change.class === 'ok') {
      this.#level = level;
      this.#version = Math.max(this.#version, change.version ?? 0);
    } else await this.#learn();
    return change;
  }

  /** Learns the version in force: that of another client, or an own one whose answer was lost. */
  async #learn(): Promise<void> {
    const { agent, pick, deadlineMillis } = this.#init;
    const target = await pick();
    if (target === undefined) return;
    const patienceMillis = deadlineMillis + PATIENCE_MILLIS;
    const outcome = await attempt({ agent, port: target.port, method: 'GET', path: PATH, patienceMillis });
    if (outcome.kind !== 'answer' || outcome.status !== 200) return;
    this.#version = Math.max(this.#version, numberOrNull(fieldsOf(outcome.body)['version']) ?? 0);
  }
}
