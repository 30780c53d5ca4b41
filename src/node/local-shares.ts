/**
 * What this node grants alone under rules that are `local`, while nobody can decide: its share of each limit, by its own monotonic
 * clock. In memory only, and in no log: a process that starts anew has granted nothing.
 */
import { NodeShare } from '../limiter/node-share.ts';
import type { MatchedLimit } from '../matching/matched-limit.ts';

/** Keys of all rules together that are remembered; one more takes the place of the one that was granted longest ago. */
export const LOCAL_KEYS_MAX = 4_096;

export interface LocalSharesInit {
  /** Of the cluster, as far as this node knows: 1 and more. */
  readonly nodeCount: () => number;
  readonly monotonicMillis: () => number;
}

/** A key under one share. */
interface KnownKey {
  readonly shareName: string;
  readonly share: NodeShare;
  readonly key: string;
}

/**
 * **Guarantee.** Under each window of each rule a key is granted at most `floor(limit / nodes)` in any rolling window, while it is
 * remembered. A key that was dropped, or whose limit or number of nodes has changed, starts anew: with more than
 * `LOCAL_KEYS_MAX` keys in use within a window, a node may grant its share again to those that come back.
 */
export class LocalShares {
  readonly #init: LocalSharesInit;
  /** By window and its share. Each holds keys of `#keys`, at least one. */
  readonly #shares = new Map<string, NodeShare>();
  /** Those that were granted longest ago come first. */
  readonly #keys = new Map<string, KnownKey>();

  constructor(init: LocalSharesInit) {
    this.#init = init;
  }

  /** That are remembered: at most `LOCAL_KEYS_MAX`. */
  get keyCount(): number {
    return this.#keys.size;
  }

  /**
   * Takes the costs from the shares of all of these limits, or from none.
   *
   * @returns milliseconds until all of them fit if nothing else is taken; 0: they were taken
   */
  take(limits: readonly MatchedLimit[]): number {
    // A monotonic clock may begin below 0 where it is played.
    const nowMillis = Math.max(0, Math.floor(this.#init.monotonicMillis()));
    const nodes = this.#init.nodeCount();
    const wanted = limits.map((limit) => {
      const { ruleId, window, userId: key, cost } = limit;
      const shareName = `${ruleId}\n${window.limit}/${window.windowMillis}/${nodes}`;
      const share = this.#shares.get(shareName) ?? new NodeShare(window.limit, window.windowMillis, nodes);
      return { shareName, share, key, cost };
    });
    const waits = wanted.map(({ share, key, cost }) => share.millisUntilAllowed(key, nowMillis, cost));
    const waitMillis = Math.max(...waits);
    if (waitMillis > 0) return waitMillis;
    for (const { shareName, share, key, cost } of wanted) {
      share.allow(key, nowMillis, cost);
      this.#remember({ shareName, share, key });
    }
    return 0;
  }

  #remember(known: KnownKey): void {
    const name = `${known.shareName}\n${known.key}`;
    this.#keys.delete(name);
    this.#keys.set(name, known);
    this.#shares.set(known.shareName, known.share);
    if (this.#keys.size <= LOCAL_KEYS_MAX) return;
    const [oldest] = this.#keys;
    if (oldest === undefined) return;
    const [oldestName, { shareName, share, key }] = oldest;
    this.#keys.delete(oldestName);
    share.forget(key);
    if (share.userCount === 0) this.#shares.delete(shareName);
  }
}
