/** Tests the progress that a starting node reports. */
import { describe, expect, it } from 'vitest';
import { StartProgress } from '../../cluster/start-progress.ts';

const PATIENCE_MILLIS = 30_000;

function start(): { progress: StartProgress; said: string[] } {
  const said: string[] = [];
  return { progress: new StartProgress(PATIENCE_MILLIS, (line) => said.push(line), 0), said };
}

function both(state: string): Map<number, string> {
  return new Map([
    [1, state],
    [2, 'ready'],
  ]);
}

describe('nodes that are starting', () => {
  it('are waited for as long as one of them makes progress', () => {
    const { progress } = start();
    for (let loaded = 0; loaded < 17; loaded += 1) {
      const now = loaded * (PATIENCE_MILLIS - 1);
      expect(progress.record(both(`starting, ${loaded} of 17 groups loaded`), now)).toBe(true);
    }
  });

  it('are not waited for after a time without progress', () => {
    const { progress } = start();
    expect(progress.record(both('no answer'), 5_000)).toBe(true);
    expect(progress.record(both('no answer'), 35_000)).toBe(true);
    expect(progress.record(both('no answer'), 35_001)).toBe(false);
    expect(progress.describe()).toBe('node 1: no answer; node 2: ready');
  });

  it('are not waited for if one only changes between the same states', () => {
    const { progress } = start();
    const states = ['waiting for leaders', 'ready', 'no answer'];
    const peeks = Array.from({ length: 40 }, (_, second) =>
      progress.record(both(states[second % states.length] ?? ''), second * 1_000),
    );
    expect(peeks.indexOf(false)).toBe(33);
  });

  it('have their progress printed if that takes more than a moment, but not at every check', () => {
    const { progress, said } = start();
    progress.record(both('no answer'), 2_999);
    expect(said).toEqual([]);
    progress.record(both('starting, 1 of 17 groups loaded'), 3_000);
    expect(said).toEqual(['node 1: starting, 1 of 17 groups loaded', 'node 2: ready']);
    progress.record(both('starting, 2 of 17 groups loaded'), 3_050);
    progress.record(both('starting, 9 of 17 groups loaded'), 5_000);
    progress.record(both('starting, 9 of 17 groups loaded'), 9_000);
    expect(said.slice(2)).toEqual(['node 1: starting, 9 of 17 groups loaded']);
    progress.end(both('ready'));
    expect(said.slice(3)).toEqual(['node 1: ready']);
  });

  it('have nothing printed if all are ready in a moment', () => {
    const { progress, said } = start();
    progress.record(both('no answer'), 100);
    progress.end(both('ready'));
    expect(said).toEqual([]);
  });
});
