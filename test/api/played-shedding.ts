/** A fake of load shedding, controlled by a test. At first nothing is refused. It counts open requests. */
import type { ClientShare, SheddingBehindDoor } from '../../src/api/shedding.ts';

export class PlayedShedding implements SheddingBehindDoor {
  /** The clients that are refused; `true`: all clients. */
  refused: ReadonlySet<string> | true = new Set();
  /** The clients of every call of `refuses`. */
  readonly asked: string[] = [];
  readonly shares = new Map<string, ClientShare>();

  refuses(client: string, isLate = false): boolean {
    this.asked.push(client);
    if (isLate) this.late.push(client);
    return this.refused === true || this.refused.has(client);
  }

  isBusy = false;
  /** The clients with bytes that waited unread. */
  readonly late: string[] = [];

  entered(client: string, requests: number): ClientShare {
    const share = this.shares.get(client) ?? { open: 0 };
    this.shares.set(client, share);
    share.open += requests;
    return share;
  }

  left(share: ClientShare, requests: number): void {
    share.open -= requests;
  }
}
