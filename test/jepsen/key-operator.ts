/**
 * The operator of a cluster under test: blocks, unblocks and resets a few keys that clients use. Each attempt is one
 * event of the history; there are no silent retries.
 */
import type { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { RandomBelow } from '../../raft/core-state.ts';
import { attempt, nowNanos, PATIENCE_MILLIS } from './http-attempt.ts';
import { endingOf } from './joint-attempts.ts';
import { KEY_ACTIONS, type KeyAction, type KeyChange } from './joint-history.ts';

export interface KeyOperatorInit {
  readonly random: RandomBelow;
  readonly agent: Agent;
  readonly pick: () => Promise<{ readonly id: number; readonly port: number } | undefined>;
  readonly record: (event: KeyChange) => void;
  readonly deadlineMillis: number;
}

/** Only these users are blocked and reset. */
export const OPERATED_USERS = ['op0', 'op1', 'op2'] as const;
const PAUSE_MILLIS_MAX = 1_500;

const REQUESTS: Readonly<Record<KeyAction, Pick<Parameters<typeof attempt>[0], 'method' | 'path'>>> = {
  block: { method: 'PUT', path: 'block' },
  unblock: { method: 'DELETE', path: 'block' },
  reset: { method: 'POST', path: 'reset' },
};

export class KeyOperator {
  readonly #init: KeyOperatorInit;

  constructor(init: KeyOperatorInit) {
    this.#init = init;
  }

  /** A block is removed in the next step, so that no key is blocked for long. */
  async run(isActive: () => boolean): Promise<void> {
    const { random } = this.#init;
    while (isActive()) {
      await delay(random(PAUSE_MILLIS_MAX));
      const key = `user=${OPERATED_USERS[random(OPERATED_USERS.length)] ?? ''}`;
      const action = KEY_ACTIONS[random(KEY_ACTIONS.length)] ?? 'reset';
      await this.#change(key, action);
      if (action !== 'block') continue;
      await delay(random(PAUSE_MILLIS_MAX));
      await this.#change(key, 'unblock');
    }
  }

  async #change(key: string, action: KeyAction): Promise<void> {
    const { agent, pick, record, deadlineMillis } = this.#init;
    const target = await pick();
    if (target === undefined) return;
    const { method, path } = REQUESTS[action];
    const invokeNanos = nowNanos();
    const outcome = await attempt({
      agent,
      port: target.port,
      method,
      path: `/v1/keys/${encodeURIComponent(key)}/${path}`,
      patienceMillis: deadlineMillis + PATIENCE_MILLIS,
    });
    const asked = {
      op: 'key',
      key,
      action,
      node: target.id,
      invokeNanos,
      completeNanos: nowNanos(),
    } as const;
    if (outcome.kind === 'answer') record({ ...asked, ...endingOf(outcome.status, outcome.body) });
    else record({ ...asked, status: 0, class: outcome.sent ? 'info' : 'fail', error: outcome.code });
  }
}
