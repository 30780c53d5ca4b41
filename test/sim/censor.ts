/** What never arrives while all else does: messages of group 0 at some nodes, and some leaders' own entries. */
import type { PeerMessage } from '../../raft/driver/peer-message.ts';
import type { NodeId } from '../../raft/types.ts';
import { META_GROUP } from '../../src/meta/cluster-placement.ts';
import { decodePeerMessages, encodePeerMessages } from '../../src/wire/peer-messages.ts';

export class Censor {
  /** Nothing of group 0 reaches these. */
  readonly #blind = new Set<NodeId>();
  readonly #withheld = new Set<NodeId>();

  blind(node: NodeId, isBlind: boolean): void {
    if (isBlind) this.#blind.add(node);
    else this.#blind.delete(node);
  }

  /** Entries of its own term are cut off from what this node sends, and nothing else. */
  withhold(node: NodeId, isWithheld: boolean): void {
    if (isWithheld) this.#withheld.add(node);
    else this.#withheld.delete(node);
  }

  /** What of these messages is sent, in as many payloads as it takes. */
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

/** A beat may be, too: whoever is blind hears none, and has a heartbeat of each other group instead. */
function isOfMeta(sent: PeerMessage): boolean {
  return !('group' in sent) || sent.group === META_GROUP;
}

/** As if its sender had left them for the next message. */
function withoutOwnEntries(sent: PeerMessage): PeerMessage {
  if (sent.kind !== 'message' || sent.message.type !== 'append') return sent;
  const { entries, term } = sent.message;
  return { ...sent, message: { ...sent.message, entries: entries.filter((entry) => entry.term !== term) } };
}
