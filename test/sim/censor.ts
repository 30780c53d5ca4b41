/**
 * Drops selected messages while all others arrive: messages of group 0 to some nodes, and some leaders' own entries.
 */
import type { PeerMessage } from '../../raft/driver/peer-message.ts';
import type { NodeId } from '../../raft/types.ts';
import { META_GROUP } from '../../src/meta/cluster-placement.ts';
import { decodePeerMessages, encodePeerMessages } from '../../src/wire/peer-messages.ts';

export class Censor {
  /** No message of group 0 reaches these. */
  readonly #blind = new Set<NodeId>();
  readonly #withheld = new Set<NodeId>();

  blind(node: NodeId, isBlind: boolean): void {
    if (isBlind) this.#blind.add(node);
    else this.#blind.delete(node);
  }

  /** Removes entries of its own term from the messages of this node, and nothing else. */
  withhold(node: NodeId, isWithheld: boolean): void {
    if (isWithheld) this.#withheld.add(node);
    else this.#withheld.delete(node);
  }

  /** The part of these messages that is sent, in as many payloads as necessary. */
  passed(from: NodeId, to: NodeId, payload: Uint8Array): readonly Uint8Array[] {
    const isBlind = this.#blind.has(to);
    const isWithheld = this.#withheld.has(from);
    if (!isBlind && !isWithheld) return [payload];
    const seen = decodePeerMessages(payload, from, to)
      .filter((message) => !(isBlind && isOfMeta(message)))
      .map((message) => (isWithheld ? withoutOwnEntries(message) : message));
    return encodePeerMessages(seen);
  }
}

/**
 * A beat (the common heartbeat of resting groups) may be one, too: a blind node gets none, and gets a heartbeat of each
 * other group instead.
 */
function isOfMeta(sent: PeerMessage): boolean {
  return !('group' in sent) || sent.group === META_GROUP;
}

/** As if its sender had left them for the next message. */
function withoutOwnEntries(sent: PeerMessage): PeerMessage {
  if (sent.kind !== 'message' || sent.message.type !== 'append') return sent;
  const { entries, term } = sent.message;
  return { ...sent, message: { ...sent.message, entries: entries.filter((entry) => entry.term !== term) } };
}
