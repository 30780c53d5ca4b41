/** Gives snapshots of this node's groups to a backup, one at a time. */
import type { BackupDone, BackupSnapshot } from '../api/backup.ts';
import type { MultiRaft } from '../../raft/driver/multi-raft.ts';
import type { LogStore } from '../../raft/driver/store.ts';
import type { SnapshotMeta } from '../../raft/types.ts';
import { KEY_HASH } from '../partition/hash.ts';
import type { NodeCoreInit } from './node-core-init.ts';

/** The backup access of a node. */
export function backupsOf({ config, store }: NodeCoreInit, raft: MultiRaft): Backups {
  const { clusterId, partitions } = config;
  return new Backups({ raft, store, cluster: { clusterId, partitions, hash: KEY_HASH } });
}

interface BackupsInit {
  readonly raft: MultiRaft;
  readonly store: LogStore;
  /** Facts of the cluster that each snapshot repeats. */
  readonly cluster: Pick<BackupSnapshot, 'clusterId' | 'partitions' | 'hash'>;
}

/** The snapshots of one node for backups. */
export class Backups {
  readonly #init: BackupsInit;
  /** Only one at a time: an open snapshot prevents its group from compacting its log. */
  #isBusy = false;

  constructor(init: BackupsInit) {
    this.#init = init;
  }

  /** Opens a current snapshot of a group, see `OpenBackup`. Only the leader of the group has one. */
  open(group: number, done: BackupDone): void {
    const { raft, cluster } = this.#init;
    if (group > cluster.partitions) return done({ ok: false, reason: 'noSuchGroup' });
    if (!raft.leads(group)) return done({ ok: false, reason: 'notLeader' });
    if (this.#isBusy) return done({ ok: false, reason: 'busy' });
    this.#isBusy = true;
    raft.currentSnapshot(group, (meta) => {
      if (meta !== undefined) return this.#opened(group, meta, done);
      this.#isBusy = false;
      done({ ok: false, reason: 'notLeader' });
    });
  }

  #opened(group: number, meta: SnapshotMeta, done: BackupDone): void {
    const { raft, store, cluster } = this.#init;
    const { index, term, timeMillis, chunkCount, byteLength } = meta;
    let isOpen = true;
    done({
      ok: true,
      backup: {
        snapshot: { ...cluster, group, index, term, timeMillis, chunkCount, byteLength },
        read: async (chunk) => store.readSnapshotChunk(group, index, chunk),
        close: () => {
          if (!isOpen) return;
          isOpen = false;
          this.#isBusy = false;
          raft.releaseSnapshot(group);
        },
      },
    });
  }
}
