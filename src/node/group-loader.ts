/** Restores a group from disk, chunk by chunk, so that the event loop is not blocked. */
import type { GroupApplication } from '../../raft/driver/group-application.ts';
import { assert } from '../../raft/assert.ts';
import type { LogStore } from '../../raft/driver/store.ts';
import type { GroupId, StoredGroup } from '../../raft/types.ts';

/**
 * Restores the stored snapshot into `app`. Nothing may be written meanwhile.
 *
 * @throws the error of the disk if a chunk cannot be read, or that of `app` if the snapshot is invalid
 */
export async function restoreGroup(
  store: LogStore,
  group: GroupId,
  { snapshot }: StoredGroup,
  app: GroupApplication,
): Promise<void> {
  if (snapshot === undefined) return;
  const target = app.restore(snapshot);
  for (let chunk = 0; chunk < snapshot.chunkCount; chunk += 1) {
    const data = await store.readSnapshotChunk(group, snapshot.index, chunk);
    assert(
      data !== undefined,
      'nobody replaces snapshot {} of group {} while it is read',
      snapshot.index,
      group,
    );
    target.add(data);
  }
  target.complete();
  target.install();
}
