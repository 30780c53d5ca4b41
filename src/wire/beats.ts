/**
 * Encodes beats and their answers within the frame of peer messages. A beat of two nodes stands in for the
 * heartbeats of all their idle groups.
 */
import type { Beat, BeatAnswer, IdleGroup } from '../../raft/driver/peer-message.ts';
import type { ByteReader } from '../bytes/byte-reader.ts';
import type { ByteWriter } from '../bytes/byte-writer.ts';

/** Writes a beat. */
export function encodeBeat(out: ByteWriter, { from, process, version, readingMillis, groups }: Beat): void {
  out.integer(from);
  out.integer(process);
  out.integer(version);
  out.integer(readingMillis);
  out.flag(groups !== undefined);
  if (groups === undefined) return;
  out.integer(groups.length);
  for (const { group, term, index, timeMillis } of groups) {
    out.integer(group);
    out.integer(term);
    out.integer(index);
    out.integer(timeMillis);
  }
}

/** Reads a beat. */
export function decodeBeat(input: ByteReader): Beat {
  const beat: Beat = {
    kind: 'beat',
    from: input.integer('from'),
    process: input.integer('process'),
    version: input.integer('version'),
    readingMillis: input.integer('readingMillis'),
  };
  if (!input.flag('hasGroups')) return beat;
  const groups = Array.from({ length: input.count('groups') }, (): IdleGroup => {
    const group = input.integer('group');
    const term = input.integer('term');
    const index = input.integer('index');
    return { group, term, index, timeMillis: input.integer('timeMillis') };
  });
  return { ...beat, groups };
}

/** Writes the answer to a beat. */
export function encodeBeatAnswer(out: ByteWriter, { from, process, version, awake }: BeatAnswer): void {
  out.integer(from);
  out.integer(process);
  out.integer(version);
  out.integers(awake);
}

/** Reads the answer to a beat. */
export function decodeBeatAnswer(input: ByteReader): BeatAnswer {
  return {
    kind: 'beatAnswer',
    from: input.integer('from'),
    process: input.integer('process'),
    version: input.integer('version'),
    awake: input.integers('awake'),
  };
}
