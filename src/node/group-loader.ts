/** Brings a group back from the disk: its log, and its snapshot chunk by chunk, so that nothing holds the event loop. */
import type { GroupApplication } from '../../raft/driver/group-application.ts';
import { assert } from '../../raft/assert.ts';
import type { LogStore } from '../../raft/driver/store.ts';
import type { GroupId, StoredGroup } from '../../raft/types.ts';

/**
 * Gives `app` the state of the stored snapshot. Nothing may be written meanwhile.
 *
 * @throws what the disk throws if a chunk cannot be read, or `app` if the snapshot is none it wrote
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
