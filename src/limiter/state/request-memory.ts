/**
 * Remembers the answers of grants by user and request id, so that a retry gets the same answer and is charged nothing.
 * It also remembers what was asked, so that a different request with the same id is detected.
 */

import { jointGrant } from '../../api/joint-answer.ts';
import type { Decision } from '../decision.ts';
import { BlockPool, wordOf } from './block-pool.ts';
import { LinearIndex } from './linear-index.ts';
import type { LostHistory } from './lost-history.ts';
import { GRANT_WORDS, GrantView, HASH, INDEXED, keyLengths, KIND, NEXT, TEXTS } from './remembered-grant.ts';
import { idBehind, NONE, Rows } from './rows.ts';
import { REQUEST_ID_BYTES, type StateSize } from './state-size.ts';
import { TextBytes, unitsOfText } from './text-bytes.ts';
import type { AllowRequest } from '../../api/request.ts';

const ROWS_PER_SEGMENT = 512;

/**
 * What a request id belongs to: one user, independent of the rule. Two requests with the same key are either
 * attempts of one request or a mistake of the caller: see `conflictBetween`. The key is in bytes, for lookups, and
 * one object is reused for many.
 */
export class RequestKey {
  readonly text: TextBytes;
  lengths = 0;

  constructor(seed: number) {
    this.text = new TextBytes(seed);
  }

  set(userId: string, requestId: string): void {
    this.text.clear();
    const userBytes = this.text.append(userId);
    const requestIdBytes = this.text.append(requestId);
    this.seal(userBytes, requestIdBytes);
  }

  /** Sets the key of a further limit of a request. No lookup uses it: it is found after the first limit. */
  setFurther(userId: string): void {
    this.text.clear();
    this.seal(this.text.append(userId), 0);
  }

  get isFurther(): boolean {
    return this.lengths < keyLengths(0, 1);
  }

  /** Completes the key. Its text is there already. */
  seal(userBytes: number, requestIdBytes: number): void {
    // The lengths are part of the key: 'ab' + 'c' differs from 'a' + 'bc'.
    this.lengths = keyLengths(userBytes, requestIdBytes);
    this.text.seal(userBytes);
  }
}

/** The same as text, for code that keeps requests outside the state; undefined without a request id. */
export function requestKeyOf({ userId, requestId }: AllowRequest): string | undefined {
  return requestId === undefined ? undefined : `${userId.length}:${userId}${requestId}`;
}

/** Notified before the oldest grant is forgotten, and before a grant is refunded. */
export interface MemoryWatcher {
  beforeDrop(id: number): void;
  beforeRefund(id: number): void;
}

/** A queue in the order of grants. All replicas hold the same grants, including expired ones that are not swept yet. */
export class RequestMemory {
  readonly #size: StateSize;
  readonly #lost: LostHistory;
  readonly #rows = new Rows(GRANT_WORDS, ROWS_PER_SEGMENT);
  /** If a key was granted again after its grant had expired, the index contains only the newer grant. */
  readonly #index = new LinearIndex(this.#rows, { hash: HASH, next: NEXT });
  /** The blocks of texts; the owner of a block is its grant. */
  readonly #pool = new BlockPool((id, address) => {
    this.#rows.words(id)[this.#rows.at(id) + TEXTS] = address;
  });
  readonly #view = new GrantView();
  /** Set while a snapshot is still reading this memory. */
  watcher: MemoryWatcher | undefined;

  constructor(size: StateSize, lost: LostHistory) {
    this.#size = size;
    this.#lost = lost;
  }

  /** Number of grants held. */
  get size(): number {
    return this.#rows.size;
  }

  /**
   * The id of the oldest grant. The ids of the others follow up to, but excluding, `next`, and wrap around: see `Rows`.
   */
  get first(): number {
    return this.#rows.first;
  }

  get next(): number {
    return this.#rows.next;
  }

  /** The id of the key's unexpired grant, or `NONE`. */
  find(key: RequestKey, nowMillis: number): number {
    const id = this.#newest(key);
    // An expired grant is treated as if it were swept already.
    if (id !== NONE && this.#isLost(this.view(id))) return NONE;
    return id !== NONE && this.view(id).expiresMillis >= nowMillis ? id : NONE;
  }

  /** The ids of all limits of the request whose first limit is `first`. */
  *limitsOf(first: number): Generator<number, void> {
    yield first;
    for (let id = idBehind(first, 1); id !== this.next && this.view(id).isFurther; id = idBehind(id, 1))
      yield id;
  }

  /** The answer of the grant, for a retry. */
  answerOf(id: number): Decision {
    const second = idBehind(id, 1);
    const { decision } = this.view(id);
    if (second === this.next || !this.view(second).isFurther) return decision;
    return jointGrant([...this.limitsOf(id)].map((limit) => this.view(limit).decision));
  }

  /**
   * The limit whose numbers were reported for the request of `first`: the first with the least remaining, as in
   * `jointGrant`.
   */
  reportingOf(first: number): number {
    let reporting = first;
    let least = Infinity;
    for (const id of this.limitsOf(first)) {
      const { remaining } = this.view(id);
      if (remaining >= least) continue;
      least = remaining;
      reporting = id;
    }
    return reporting;
  }

  /** Points to a grant. Valid until the next lookup or change. */
  view(id: number, into: GrantView = this.#view): GrantView {
    into.words = this.#rows.words(id);
    into.doubles = this.#rows.doubles(id);
    into.at = this.#rows.at(id);
    const texts = into.words[into.at + TEXTS]!;
    into.bytes = this.#pool.slab(texts).bytes;
    into.bytesAt = wordOf(texts) * 4;
    return into;
  }

  /** Marks the grant as refunded; it stays remembered. */
  refund(id: number): void {
    this.watcher?.beforeRefund(id);
    this.view(id).refund();
  }

  /** The bytes that `remember` would add, by the model of `StateSize`. */
  bytesFor({ text }: RequestKey, ruleId: TextBytes): number {
    return REQUEST_ID_BYTES + ruleFromOf(text) + ruleId.length;
  }

  /**
   * Remembers a grant of a key that `find` does not find, under the given rule; or a further limit of the grant
   * remembered last. Returns the row to be filled in.
   */
  remember(key: RequestKey, ruleId: TextBytes): GrantView {
    const { text } = key;
    const isFurther = key.isFurther;
    const superseded = isFurther ? NONE : this.#newest(key);
    if (superseded !== NONE) this.#takeOut(superseded);
    const ruleFrom = ruleFromOf(text);
    const id = this.#rows.append();
    const texts = this.#pool.allocate(unitsOfText(ruleFrom + ruleId.length), id);
    text.store(this.#pool, texts, 0);
    ruleId.store(this.#pool, texts, ruleFrom);
    const words = this.#rows.words(id);
    const at = this.#rows.at(id);
    words[at + TEXTS] = texts;
    words[at + KIND] = isFurther ? 0 : INDEXED;
    if (!isFurther) this.#index.insert(id, text.hash);
    this.#size.requestIds += 1;
    this.#size.requestIdTextBytes += ruleFrom + ruleId.length;
    const view = this.view(id);
    view.setLengths(key.lengths, ruleId.length);
    return view;
  }

  /**
   * Drops up to `count` of the oldest grants that have expired at `nowMillis`. If the horizon was shortened, a grant
   * with a shorter life can wait behind one with a longer; `find` does not return it.
   */
  expire(nowMillis: number, count: number): void {
    for (let dropped = 0; dropped < count && this.size > 0; dropped += 1) {
      const id = this.#rows.first;
      if (this.expiredFromMillis(id) > nowMillis) return;
      this.watcher?.beforeDrop(id);
      const { textBytes, words, at } = this.view(id);
      if ((words[at + KIND]! & INDEXED) !== 0) this.#takeOut(id);
      this.#size.requestIds -= 1;
      this.#size.requestIdTextBytes -= textBytes;
      this.#pool.free(words[at + TEXTS]!, unitsOfText(textBytes));
      this.#rows.dropFirst();
    }
  }

  /** The group time from which on a grant may be dropped. */
  expiredFromMillis(id: number): number {
    const view = this.view(id);
    return this.#isLost(view) ? 0 : view.expiresMillis + 1;
  }

  /** It may have been refunded in the missing part of the history. */
  #isLost({ decidedIndex }: GrantView): boolean {
    return this.#lost.throughIndex > 0 && decidedIndex <= this.#lost.throughIndex;
  }

  #newest({ text, lengths }: RequestKey): number {
    const { hash } = text;
    let id = this.#index.first(hash);
    while (id !== NONE) {
      const view = this.view(id);
      if (view.keyLengths === lengths && text.equals(this.#pool, view.words[view.at + TEXTS]!)) return id;
      id = this.#index.after(id, hash);
    }
    return NONE;
  }

  #takeOut(id: number): void {
    this.#index.remove(id);
    this.#rows.words(id)[this.#rows.at(id) + KIND]! &= ~INDEXED;
  }
}

/** Where the rule id begins, after the user id and request id: at the start of a word. */
function ruleFromOf({ length }: TextBytes): number {
  return (length + 3) & ~3;
}
