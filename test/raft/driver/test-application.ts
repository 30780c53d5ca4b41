/**
 * The state machine of a group in driver tests: a digest of all applied entries. Its snapshots are padded to several
 * chunks.
 */
import { assert } from '../../../raft/assert.ts';
import type {
  LeadershipStatus,
  SnapshotSource,
  SnapshotTarget,
} from '../../../raft/driver/group-application.ts';
import { GroupClock } from '../../../raft/driver/group-clock.ts';
import type { GroupApplication } from '../../../raft/driver/multi-raft.ts';
import type { Entry, GroupConfig, GroupId, SnapshotMeta } from '../../../raft/types.ts';
import type { Agreement } from './agreement.ts';
import { sourceOf, targetOf } from './whole-snapshots.ts';

const CHUNK_BYTES = 100;

export class TestApplication implements GroupApplication {
  readonly clock: GroupClock;
  readonly #group: GroupId;
  readonly #agreement: Agreement;
  index = 0;
  digest = 0;
  /** Requests that are not proposed yet. Those that are proposed together become one entry. */
  readonly pending: string[] = [];
  /** Every entry applied since the last start, without those that came in a snapshot. */
  readonly applied: Entry[] = [];
  /** The commands of `applied` as text; those that were proposed together are one text. */
  readonly commands: string[] = [];
  config: GroupConfig | undefined;
  /** Every configuration that the driver reported since the last start. */
  readonly configs: GroupConfig[] = [];
  status: LeadershipStatus = { isLeader: false, term: 0, leader: 0 };
  /** The step at which a leader's snapshot turns out to be damaged. */
  unsoundAt: 'add' | 'complete' | undefined;
  isSlowToApply: (entry: Entry) => boolean = () => false;
  /** States that are being built from snapshots, beside the present one. */
  building = 0;

  constructor(group: GroupId, agreement: Agreement, now: () => number) {
    this.#group = group;
    this.#agreement = agreement;
    this.clock = new GroupClock(now, now);
  }

  takeProposal(): Uint8Array | undefined {
    return this.pending.length === 0 ? undefined : new TextEncoder().encode(this.pending.splice(0).join(','));
  }

  proposed(): void {}

  apply(entry: Entry): void {
    assert(entry.index === this.index + 1, `${entry.index} is applied after ${this.index}`);
    let digest = Math.imul(this.digest ^ entry.term, 0x01000193) ^ entry.index;
    for (const byte of entry.data) digest = Math.imul(digest ^ byte, 0x01000193);
    this.applied.push(entry);
    if (entry.kind === 'command') this.commands.push(new TextDecoder().decode(entry.data));
    this.#become(entry.index, digest >>> 0);
  }

  #become(index: number, digest: number): void {
    this.index = index;
    this.digest = digest;
    this.#agreement.applied(this.#group, index, digest);
  }

  snapshot(): SnapshotSource {
    const { index, digest } = this;
    const bytes = new TextEncoder().encode(
      JSON.stringify({ index, digest, padding: 'x'.repeat(700 + (index % 5) * 100) }),
    );
    const chunks: Uint8Array[] = [];
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES) chunks.push(bytes.slice(at, at + CHUNK_BYTES));
    return sourceOf(chunks);
  }

  restore(meta: SnapshotMeta): SnapshotTarget {
    const target = targetOf((chunks) => this.#install(meta, chunks));
    this.building += 1;
    return {
      add: (chunk) => {
        if (this.unsoundAt === 'add') throw new RangeError('this is no chunk of a snapshot');
        target.add(chunk);
      },
      complete: () => {
        if (this.unsoundAt === 'complete') throw new RangeError('this is no whole snapshot');
        target.complete();
      },
      install: () => {
        this.building -= 1;
        target.install();
      },
    };
  }

  #install(meta: SnapshotMeta, chunks: readonly Uint8Array[]): void {
    const bytes = new Uint8Array(chunks.flatMap((chunk) => [...chunk]));
    const state = JSON.parse(new TextDecoder().decode(bytes)) as { index: number; digest: number };
    assert(state.index === meta.index, `the snapshot of ${meta.index} holds ${state.index}`);
    this.#become(state.index, state.digest);
  }

  configChanged(config: GroupConfig): void {
    this.config = config;
    this.configs.push(config);
    if (this.index > 0) this.#agreement.configured(this.#group, this.index, config);
  }

  statusChanged(status: LeadershipStatus): void {
    this.status = status;
  }
}
