/** Connects the three parts of the snapshot traffic of a node: outgoing streams, incoming streams and restores. */
import { assert } from '../assert.ts';
import type { Group } from './group.ts';
import type { SnapshotTarget } from './group-application.ts';
import type { IncomingSnapshot } from './incoming-snapshot.ts';
import { IncomingSnapshots } from './incoming-snapshots.ts';
import { OutgoingSnapshots, type SnapshotStreamOptions } from './outgoing-snapshots.ts';
import type { PeerMessage, SnapshotChunk, SnapshotChunkAck } from './peer-message.ts';
import { SnapshotRestores } from './snapshot-restores.ts';
import type { LogStore } from './store.ts';
import type { GroupId, InstallSnapshot, NodeId, SnapshotMeta } from '../types.ts';

/** What the snapshot traffic of a node is created with. */
export interface SnapshotTrafficInit {
  readonly id: NodeId;
  readonly store: LogStore;
  readonly options: SnapshotStreamOptions;
  readonly groupOf: (id: GroupId) => Group | undefined;
  readonly post: (to: NodeId, message: PeerMessage) => void;
  /** The group has data to write or messages to send. */
  readonly activate: (group: Group) => void;
  readonly schedule: () => void;
  /** A leader sent an invalid snapshot. */
  readonly refused: (group: GroupId, meta: SnapshotMeta, error: unknown) => void;
  readonly failed: (error: unknown) => void;
}

/** All snapshots that leave a node, arrive, or are being restored. */
export class SnapshotTraffic {
  readonly #init: SnapshotTrafficInit;
  readonly #outgoing: OutgoingSnapshots;
  readonly #incoming: IncomingSnapshots;
  readonly #restores: SnapshotRestores;

  constructor(init: SnapshotTrafficInit) {
    this.#init = init;
    const { store, post, activate, schedule, failed } = init;
    this.#outgoing = new OutgoingSnapshots({
      id: init.id,
      store,
      options: init.options,
      send: (to, chunk) => {
        post(to, chunk);
        schedule();
      },
      done: (id, to, fate) => {
        const group = init.groupOf(id);
        if (group === undefined) return;
        group.core.snapshotDone(to, fate);
        activate(group);
      },
      failed,
    });
    this.#restores = new SnapshotRestores({
      store,
      built: (group, incoming, target) => this.#install(group, incoming, target),
      dropped: (group, incoming, error) => this.#dropped(group, incoming, error),
      schedule,
      failed,
    });
    this.#incoming = new IncomingSnapshots({
      answer: post,
      activate,
      complete: (group, incoming) => this.#restores.add(group, incoming),
    });
  }

  /** Sends the stored snapshot to `request.to`, as a leader's core asks. */
  send(group: Group, request: InstallSnapshot): void {
    this.#outgoing.start(group.id, request, group.snapshots.stored);
  }

  isSending(group: GroupId): boolean {
    return this.#outgoing.isSending(group);
  }

  receive(group: Group, chunk: SnapshotChunk): void {
    this.#incoming.receive(group, chunk);
  }

  acknowledged(ack: SnapshotChunkAck): void {
    this.#outgoing.acknowledged(ack);
  }

  /** Does one chunk of the current restore. Called once per turn. */
  run(): void {
    this.#restores.run();
  }

  tick(ticks: number, heartbeatTicks: number): void {
    this.#outgoing.tick();
    this.#incoming.tick(10 * this.#init.options.silentTicksMax);
    if (ticks % heartbeatTicks === 0) this.#incoming.keepAlive();
  }

  peerLost(peer: NodeId): void {
    this.#outgoing.peerLost(peer);
  }

  /** The waiting chunk of `incoming` is on disk. */
  staged(group: Group, incoming: IncomingSnapshot): void {
    this.#incoming.staged(group, incoming);
  }

  /**
   * The snapshot is valid and on disk: passes it to the core. If the core still needs it, the next write makes it
   * effective.
   */
  #install(group: Group, incoming: IncomingSnapshot, target: SnapshotTarget): void {
    const { core } = group;
    core.step(incoming.message(core.id));
    if (core.isInstalling) {
      group.installing = { meta: incoming.meta, target };
      this.#init.activate(group);
    } else {
      this.#restores.ended(group);
      this.#dropped(group, incoming);
    }
  }

  /** The write that made the snapshot effective is done. */
  installed(group: Group): void {
    const { installing } = group;
    assert(installing !== undefined, 'group {} must have built the snapshot that it installs', group.id);
    group.installing = undefined;
    installing.target.install();
    group.snapshots.installed(installing.meta);
    this.#incoming.finished(group);
    this.#restores.ended(group);
  }

  #dropped(group: Group, incoming: IncomingSnapshot, error?: unknown): void {
    if (error !== undefined) this.#init.refused(group.id, incoming.meta, error);
    if (group.incoming !== incoming) return;
    // Either the group got all of it by other means, or another leader will send one.
    if (error === undefined && !group.core.needsSnapshot(incoming.meta)) this.#incoming.finished(group);
    else this.#incoming.forget(group);
    this.#init.activate(group);
  }

  /** This node no longer holds the group. */
  forget(group: Group): void {
    this.#outgoing.forget(group.id);
    this.#incoming.forget(group);
    group.installing = undefined;
    this.#restores.ended(group);
  }
}
