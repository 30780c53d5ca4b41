/** Helper: a scripted cluster as the source of a backup, with failures. */
import { FIRST_RULES } from '../meta/first-rules.ts';
import type { BackupSnapshot } from '../../src/api/backup.ts';
import type { BackupSource } from '../../src/backup/take-backup.ts';
import { drawToken } from '../../src/config/token-secret.ts';
import { encodeMeta } from '../../src/meta/meta-form.ts';
import { applyMetaCommand } from '../../src/meta/meta-state.ts';
import { KEY_HASH, loadHash32 } from '../../src/partition/hash.ts';
import { type Harness, harnessWith, snapshotOf } from '../limiter/harness.ts';

export class PlayedSource implements BackupSource {
  /** Called before a group is sent, and before each of its chunks; may throw. */
  before: (group: number, chunk: number | undefined) => void = () => undefined;
  readonly partitions: readonly Harness[];
  readonly #meta: Uint8Array;
  opened = 0;

  private constructor(partitions: readonly Harness[], meta: Uint8Array) {
    this.partitions = partitions;
    this.#meta = meta;
  }

  static async of(partitionCount: number, users = 2_000): Promise<PlayedSource> {
    const partitions = Array.from({ length: partitionCount }, (_, p) => {
      const harness = harnessWith({ id: 'default', limit: 3, windowMillis: 60_000, clock: 'cluster' });
      for (let i = 0; i < users; i += 1) harness.allows(`user-${p}-${i}`);
      return harness;
    });
    const nodes = [1, 2, 3].map((id) => ({ id, incarnation: `${id}`.repeat(32) }));
    const create = {
      type: 'create',
      rules: partitions[0]?.machine.ruleTable ?? FIRST_RULES,
      nodes,
      replicas: 3,
      partitions: partitionCount,
      clusterVersion: 1,
    } as const;
    const { record } = applyMetaCommand(undefined, create, await loadHash32());
    const tokens = { version: 1, entries: [drawToken({ role: 'admin', name: 'x' }, 7).entry] };
    const state = record && { ...record, state: { ...record.state, tokens } };
    return new PlayedSource(partitions, encodeMeta(state as never));
  }

  async rulesVersion(): Promise<number> {
    return 1;
  }

  async open(group: number): ReturnType<BackupSource['open']> {
    this.opened += 1;
    this.before(group, undefined);
    const { partitions, before } = this;
    const harness = partitions[group - 1];
    const chunks = harness === undefined ? [this.#meta] : snapshotOf(harness.machine);
    const { index, term, timeMillis } = harness?.machine.applied ?? { index: 9, term: 2, timeMillis: 90 };
    const snapshot: BackupSnapshot = {
      clusterId: 'played',
      partitions: partitions.length,
      hash: KEY_HASH,
      group,
      index,
      term,
      timeMillis,
      chunkCount: chunks.length,
      byteLength: chunks.reduce((sum, { length }) => sum + length, 0),
    };
    const stream = (async function* () {
      for (const [i, chunk] of chunks.entries()) {
        before(group, i);
        yield chunk;
      }
    })();
    return { snapshot, chunks: stream };
  }
}
