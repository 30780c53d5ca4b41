/** A fake of load shedding, controlled by a test. At first nothing is refused. It counts open requests. */
import type { ClientLoad, SheddingApi } from '../../src/api/api-listener.ts';

export class PlayedShedding implements SheddingApi {
  /** The clients that are refused; `true`: all clients. */
  refused: ReadonlySet<string> | true = new Set();
  /** The clients of every call of `refuses`. */
  readonly asked: string[] = [];
  readonly fractions = new Map<string, ClientLoad>();

  refuses(client: string, isLate = false): boolean {
    this.asked.push(client);
    if (isLate) this.late.push(client);
    return this.refused === true || this.refused.has(client);
  }

  isBusy = false;
  /** The clients with bytes that waited unread. */
  readonly late: string[] = [];

  entered(client: string, requests: number): ClientLoad {
    const fraction = this.fractions.get(client) ?? { open: 0 };
    this.fractions.set(client, fraction);
    fraction.open += requests;
    return fraction;
  }

  left(fraction: ClientLoad, requests: number): void {
    fraction.open -= requests;
  }
}
