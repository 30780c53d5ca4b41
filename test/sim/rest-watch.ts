/**
 * Counts how often groups rest, what wakes them, and what becomes of the beats (the common heartbeat of resting
 * groups), from the messages of nodes. Judges nothing.
 */
import type { PeerMessage } from '../../raft/driver/peer-message.ts';
import type { GroupId, NodeId } from '../../raft/types.ts';

export class RestWatch {
  readonly #seen: (name: string) => void;
  /** Groups that were listed as resting and have had no message since. */
  readonly #resting = new Set<GroupId>();
  /** Pairs of nodes: the last beat from one to the other was not answered yet. */
  readonly #unanswered = new Set<string>();

  constructor(seen: (name: string) => void) {
    this.#seen = seen;
  }

  sent(from: NodeId, to: NodeId, message: PeerMessage): void {
    switch (message.kind) {
      case 'beat':
        this.#beat(`${from}>${to}`);
        for (const { group } of message.groups ?? []) this.#rests(group);
        return;
      case 'beatAnswer':
        this.#unanswered.delete(`${to}>${from}`);
        if (message.awake.length > 0) this.#seen('beat answered: awake');
        return;
      case 'message':
        // The only message in a group that does not wake it.
        if (message.message.type !== 'heartbeatResponse') this.#woken(message.group, message.message.type);
        return;
      case 'chunk':
      case 'chunkAck':
        this.#woken(message.group, message.kind);
    }
  }

  #beat(path: string): void {
    this.#seen('beat');
    if (this.#unanswered.has(path)) this.#seen('beat after one without an answer');
    this.#unanswered.add(path);
  }

  #rests(group: GroupId): void {
    if (this.#resting.has(group)) return;
    this.#resting.add(group);
    this.#seen('rest');
  }

  #woken(group: GroupId, cause: string): void {
    if (this.#resting.delete(group)) this.#seen(`rest ended by ${cause}`);
  }
}
