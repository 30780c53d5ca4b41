/**
 * Described requests without an answer yet. Attempts of one request at one node that began in one turn ask the same, so a question
 * may be taken for that of another of them: which it was shows when a client is answered. Each must have come to its end all the same.
 */
import type { DescribedAnswer } from '../../src/api/described.ts';
import { type Asking, isCertainlyNone, mayBegin, mustStay } from './described-rounds.ts';
import { check } from './story.ts';

/** Who is answered, and what its node seems to have asked for it. */
interface Client {
  asking: Asking;
  isTold: boolean;
}

export class OpenAskings {
  readonly #clients = new Map<Asking, Client>();

  get all(): Asking[] {
    return [...this.#clients.keys()];
  }

  begin(asking: Asking): Client {
    const client = { asking, isTold: false };
    this.#clients.set(asking, client);
    return client;
  }

  /** Its process told it. Returns what its node has asked for it. */
  told(client: Client, answer: DescribedAnswer): Asking {
    const meant = client.asking;
    check(!client.isTold, () => `${JSON.stringify(meant.request)} was answered twice`);
    client.isTold = true;
    const mayBeFor = (one: Asking): boolean =>
      answer.kind === 'unavailable' ? hasEnded(one) : answer.kind !== 'decision' || mayBegin(one);
    const isMeant = mayBeFor(meant);
    const twin = isMeant ? undefined : this.all.find((one) => isTwin(one, meant) && mayBeFor(one));
    const asking = twin ?? meant;
    const other = this.#clients.get(asking);
    if (other !== undefined && asking !== meant) {
      other.asking = meant;
      this.#clients.set(meant, other);
    }
    this.forget(asking);
    asking.isAnswered = true;
    return asking;
  }

  forget(asking: Asking): void {
    this.#clients.delete(asking);
  }
}

function isTwin(one: Asking, other: Asking): boolean {
  const isSame = one.node === other.node && one.life === other.life;
  return isSame && one !== other && JSON.stringify(one.request) === JSON.stringify(other.request);
}

/** Nothing is waited for, and nothing is kept that is not granted. */
function hasEnded({ busy, rounds }: Asking): boolean {
  return (
    busy === 0 &&
    rounds.every(
      (round) =>
        mustStay(round) ||
        round.reservations.every(({ answer, isReleased }) => isReleased || isCertainlyNone(answer)),
    )
  );
}
