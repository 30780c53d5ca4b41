/** Snapshots that are written and read as a whole, for small state machines in tests. */
import type {
  GroupApplication,
  SnapshotSource,
  SnapshotTarget,
} from '../../../raft/driver/group-application.ts';
import type { SnapshotMeta } from '../../../raft/types.ts';

export function sourceOf(chunks: readonly Uint8Array[]): SnapshotSource {
  const left = [...chunks];
  return { next: () => left.shift(), abandon: () => void left.splice(0) };
}

/** Hands all chunks over when they are to be installed. */
export function targetOf(install: (chunks: readonly Uint8Array[]) => void): SnapshotTarget {
  const chunks: Uint8Array[] = [];
  return {
    add: (chunk) => void chunks.push(chunk),
    complete: () => undefined,
    install: () => install(chunks),
  };
}

/** All chunks of a state at once. */
export function chunksOf(source: SnapshotSource): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let chunk = source.next(); chunk !== undefined; chunk = source.next()) chunks.push(chunk);
  return chunks;
}

/** Replaces the state of `app` at once. */
export function restoreFrom(
  app: Pick<GroupApplication, 'restore'>,
  { meta, chunks }: { readonly meta: SnapshotMeta; readonly chunks: readonly Uint8Array[] },
): void {
  const target = app.restore(meta);
  for (const chunk of chunks) target.add(chunk);
  target.complete();
  target.install();
}
