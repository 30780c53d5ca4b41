/** Snapshots of states that are small enough to be written and read at once, for the state machines of tests. */
import type { SnapshotSource, SnapshotTarget } from '../../raft/group-application.ts';

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
