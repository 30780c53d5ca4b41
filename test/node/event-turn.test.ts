/** Tests the order of tasks within a turn of the event loop. */
import { describe, expect, it } from 'vitest';
import { EventTurn } from '../../src/node/event-turn.ts';
import { type Readable, ReadPass } from '../../src/resp/turn-passes.ts';

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a turn of the event loop', () => {
  it('decides first, then gathers, sends and replies, for any order in which these were requested', async () => {
    const turn = new EventTurn();
    const done: string[] = [];
    for (const stage of ['reply', 'send', 'gather', 'decide'] as const)
      turn.at(stage, () => done.push(stage));
    expect(done).toEqual([]);
    await nextTurn();
    expect(done).toEqual(['decide', 'gather', 'send', 'reply']);
  });

  it('is announced once, before its first task', async () => {
    const done: string[] = [];
    const turn = new EventTurn(() => done.push('began'));
    for (const stage of ['reply', 'decide'] as const) turn.at(stage, () => done.push(stage));
    await nextTurn();
    expect(done).toEqual(['began', 'decide', 'reply']);
  });

  it('sends and replies in the same turn in which it decides', async () => {
    const turn = new EventTurn();
    const done: string[] = [];
    turn.at('decide', () => {
      turn.at('reply', () => done.push('reply'));
      turn.at('gather', () => turn.at('send', () => done.push('send')));
    });
    await nextTurn();
    expect(done).toEqual(['send', 'reply']);
  });

  it('leaves tasks for a running stage to the next turn, so that sockets are read in between', async () => {
    const turn = new EventTurn();
    let runs = 0;
    const again = (): void => {
      runs += 1;
      if (runs < 3) turn.at('decide', again);
    };
    turn.at('decide', again);
    await nextTurn();
    expect(runs).toBe(1);
    await nextTurn();
    expect(runs).toBe(2);
    await nextTurn();
    expect(runs).toBe(3);
    await nextTurn();
    expect(runs).toBe(3);
  });
});

describe('frames of peers', () => {
  it('are handled between commands of clients, even if very many of these wait', async () => {
    const turn = new EventTurn();
    let [now, left] = [0, 100_000];
    const pass = new ReadPass({ monotonicMillis: () => now, atTurnEnd: (fn) => turn.at('reply', fn) });
    const flood: Readable = {
      readOn() {
        for (; left > 0; left -= 1) {
          if (!pass.mayRead()) return pass.wait(flood);
          now += 0.01;
        }
      },
    };
    flood.readOn(0);
    const leftWhenHeard = [100_000];
    while (left > 0) {
      turn.at('decide', () => leftWhenHeard.push(left));
      await nextTurn();
    }
    // About 1,000 commands of 0.01 ms from sockets, and as many that waited.
    const between = leftWhenHeard.slice(1).map((each, i) => (leftWhenHeard[i] ?? 0) - each);
    expect(Math.max(...between)).toBeLessThan(2_200);
    expect(between.length).toBeGreaterThan(50);
  });
});
