/** A naive model of grants and refunds: a list of grants. It uses no code of the product. */

interface Granted {
  readonly user: string;
  readonly id: string | undefined;
  readonly cost: number;
  readonly atMillis: number;
  isRefunded: boolean;
}

export class NaiveRefunds {
  readonly #grants: Granted[] = [];
  readonly #limit: number;
  readonly #windowMillis: number;
  readonly #horizonMillis: number;

  constructor(limit: number, windowMillis: number, horizonMillis: number) {
    this.#limit = limit;
    this.#windowMillis = windowMillis;
    this.#horizonMillis = horizonMillis;
  }

  allow(user: string, id: string | undefined, cost: number, nowMillis: number): string {
    const first = this.#remembered(user, id, nowMillis);
    if (first !== undefined) {
      if (first.cost !== cost) return 'request_id_reused';
      return first.isRefunded ? 'refunded' : `granted at ${first.atMillis}`;
    }
    if (this.spent(user, nowMillis) + cost > this.#limit) return 'denied';
    this.#grants.push({ user, id, cost, atMillis: nowMillis, isRefunded: false });
    return `granted at ${nowMillis}`;
  }

  refund(user: string, id: string, nowMillis: number): boolean {
    const grant = this.#remembered(user, id, nowMillis + 1);
    if (grant !== undefined) grant.isRefunded = true;
    return grant !== undefined;
  }

  /** The granted cost minus refunds in the window that ends now. */
  spent(user: string, nowMillis: number): number {
    return this.#grants
      .filter((grant) => grant.user === user && !grant.isRefunded)
      .filter((grant) => grant.atMillis > nowMillis - this.#windowMillis)
      .reduce((sum, { cost }) => sum + cost, 0);
  }

  /** The time until nothing is spent. */
  resetMillis(user: string, nowMillis: number): number {
    const counted = this.#grants.filter((grant) => grant.user === user && !grant.isRefunded);
    const ends = counted.map(({ atMillis }) => atMillis + this.#windowMillis - nowMillis);
    return Math.max(0, ...ends);
  }

  #remembered(user: string, id: string | undefined, nowMillis: number): Granted | undefined {
    if (id === undefined) return undefined;
    const same = this.#grants.findLast((grant) => grant.user === user && grant.id === id);
    return same !== undefined && same.atMillis + this.#horizonMillis >= nowMillis ? same : undefined;
  }
}
