/** Beats and their answers, among the messages of two nodes: what stands for the heartbeats of all groups that rest. */
import type { Beat, BeatAnswer, IdleGroup } from '../../raft/driver/peer-message.ts';
import type { BytesIn, BytesOut } from './bytes.ts';

export function encodeBeat(out: BytesOut, { from, process, version, readingMillis, groups }: Beat): void {
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

export function decodeBeat(input: BytesIn): Beat {
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

export function encodeBeatAnswer(out: BytesOut, { from, process, version, awake }: BeatAnswer): void {
  out.integer(from);
  out.integer(process);
  out.integer(version);
  out.integers(awake);
}

export function decodeBeatAnswer(input: BytesIn): BeatAnswer {
  return {
    kind: 'beatAnswer',
    from: input.integer('from'),
    process: input.integer('process'),
    version: input.integer('version'),
    awake: input.integers('awake'),
  };
}
