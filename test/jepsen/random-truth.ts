/**
 * The truth behind a random history: what a limiter without the bug would have answered, how many answers differed, and
 * where each request took effect. Decides nothing itself.
 */
import type { Fate, Placement } from './checkers/fates.ts';
import type { Operation, Question } from './history.ts';
import { UserModel } from './model.ts';
import { type Decision, type Rule, windowOf } from './random-leaders.ts';

interface User {
  readonly rule: Rule;
  readonly group: { readonly id: number };
}

interface Request {
  readonly user: User;
  readonly question: Question;
  /** The client stopped waiting, so there is no answer that could be wrong. */
  readonly isAbandoned: boolean;
}

export class Truth {
  /** The true grants, of a limiter whose decisions the bug does not affect. */
  readonly #models = new Map<User, UserModel>();
  /** The place in the log at which each request took effect, by its id. */
  readonly #granted = new Map<string, Placement>();
  /** The number of answers that a limiter without the bug would not have given. */
  wrongAnswers = 0;

  #modelOf(user: User): UserModel {
    let model = this.#models.get(user);
    if (model === undefined) {
      model = new UserModel(user.rule.limit, windowOf(user.rule));
      this.#models.set(user, model);
    }
    return model;
  }

  /** Compares an answer with that of a limiter without the bug. */
  judge({ user, question: { cost }, isAbandoned }: Request, { t, allowed, remaining }: Decision): void {
    if (isAbandoned) return;
    const model = this.#modelOf(user);
    const live = model.liveAtLeast(t);
    const right = live + cost <= model.limit;
    const rightRemaining = Math.max(0, model.limit - live - (right ? cost : 0));
    if (right !== allowed || rightRemaining !== remaining) this.wrongAnswers += 1;
  }

  /** Counts an answer as wrong without comparing it. */
  blame({ isAbandoned }: Request): void {
    if (!isAbandoned) this.wrongAnswers += 1;
  }

  granted({ user, question }: Request, { t, index, position }: Decision): void {
    const id = question.requestId ?? '';
    if (!this.#granted.has(id)) {
      this.#granted.set(id, { group: user.group.id, index, position: position ?? null, timeMillis: t });
    }
    this.#modelOf(user).record(t, question.cost);
  }

  /** The fates that the log would show for the operations that ended as `info`. */
  fatesOf(operations: readonly Operation[]): Map<Operation, Fate> {
    const fates = new Map<Operation, Fate>();
    for (const op of operations) {
      if (op.class !== 'info') continue;
      const at = this.#granted.get(op.requestId ?? '');
      fates.set(op, at === undefined ? { kind: 'uncharged' } : { kind: 'granted', at: [at] });
    }
    return fates;
  }
}
