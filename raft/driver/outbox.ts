/** What leaves with the end of a turn: one batch of messages per peer. */
import type { PeerMessage } from './peer-message.ts';
import type { GroupId, NodeId } from '../types.ts';

export class Outbox {
  readonly #messages = new Map<NodeId, PeerMessage[]>();

  post(to: NodeId, message: PeerMessage): void {
    const messages = this.#messages.get(to);
    if (messages === undefined) this.#messages.set(to, [message]);
    else messages.push(message);
  }

  /** Nothing of this group leaves any more. */
  forget(group: GroupId): void {
    for (const [to, messages] of this.#messages) {
      this.#messages.set(
        to,
        messages.filter((message) => !('group' in message) || message.group !== group),
      );
    }
  }

  flush(send: (to: NodeId, messages: readonly PeerMessage[]) => void): void {
    for (const [to, messages] of this.#messages) if (messages.length > 0) send(to, messages);
    this.#messages.clear();
  }
}
