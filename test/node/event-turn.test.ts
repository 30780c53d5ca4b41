import { describe, expect, it } from 'vitest';
import { EventTurn } from '../../src/node/event-turn.ts';

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a turn of the event loop', () => {
  it('decides first, then gathers, sends and replies, in whatever order these were asked for', async () => {
    const turn = new EventTurn();
    const done: string[] = [];
    for (const stage of ['reply', 'send', 'gather', 'decide'] as const)
      turn.at(stage, () => done.push(stage));
    expect(done).toEqual([]);
    await nextTurn();
    expect(done).toEqual(['decide', 'gather', 'send', 'reply']);
  });

  it('is told of before its first task, once', async () => {
    const done: string[] = [];
    const turn = new EventTurn(() => done.push('began'));
    for (const stage of ['reply', 'decide'] as const) turn.at(stage, () => done.push(stage));
    await nextTurn();
    expect(done).toEqual(['began', 'decide', 'reply']);
  });

  it('sends and replies in the same turn what was decided in it', async () => {
    const turn = new EventTurn();
    const done: string[] = [];
    turn.at('decide', () => {
      turn.at('reply', () => done.push('reply'));
      turn.at('gather', () => turn.at('send', () => done.push('send')));
    });
    await nextTurn();
    expect(done).toEqual(['send', 'reply']);
  });

  it('leaves to the next turn what comes while its stage runs, so that sockets are read in between', async () => {
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
