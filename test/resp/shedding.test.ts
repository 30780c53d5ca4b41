/** An overloaded node refuses commands before it runs them. A command that it has accepted is never refused later. */
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../cluster/harness.ts';
import { encodeCommand, PlayedListener, type RespClient } from './fixtures.ts';

let played: PlayedListener;

afterEach(() => played.stop());

const SHED = {
  error: 'UNAVAILABLE overloaded too many requests are waiting for a decision; nothing was granted',
};

describe('a node that sheds load', () => {
  it('refuses commands of users without asking for a decision, and counts them', async () => {
    played = await PlayedListener.listening();
    played.shedding.refused = true;
    const client = played.client();
    const commands = [
      ['ALLOW', 'ada'],
      ['CL.THROTTLE', 'ada', '1', '1', '1'],
      ['MATCH', '1', 'user', 'ada'],
      ['PEEK', 'ada'],
      ['REFUND', 'ada', 'r1'],
    ];
    for (const command of commands) expect(await client.ask(...command)).toEqual(SHED);
    expect([played.asked, played.peeks, played.refunds]).toEqual([[], [], []]);
    expect(played.listener.counts.answers.unavailable).toBe(commands.length);
    expect([played.reported, played.refusedUnread]).toEqual([[], commands.length]);
  });

  it('still reports its state', async () => {
    played = await PlayedListener.listening();
    played.shedding.refused = true;
    expect(await played.client().ask('PING')).toBe('PONG');
    expect(await played.client().ask('INFO')).toContain('redis_version');
  });

  it('refuses in the order of the commands, after those that it has accepted', async () => {
    played = await PlayedListener.listening();
    played.answer = undefined;
    const client = played.client();
    client.send('ALLOW', 'ada');
    await eventually('it is asked', () => (played.asked.length === 1 ? true : undefined));
    played.shedding.refused = true;
    client.send('ALLOW', 'bob');
    await eventually('the other one is refused', () =>
      played.shedding.asked.length === 2 ? true : undefined,
    );
    expect(client.replies).toEqual([]);
    played.open[0]?.({ kind: 'unavailable', reason: 'no_leader', proposed: false }, 0);
    const [first, second] = await client.next(2);
    expect(JSON.stringify(first)).toContain('no_leader');
    expect(second).toEqual(SHED);
  });

  it('counts the open commands of each client, by its address or its token', async () => {
    played = await PlayedListener.listening();
    played.answer = undefined;
    const client = played.client();
    client.send('ALLOW', 'ada');
    client.send('ALLOW', 'bob');
    await eventually('both are asked', () => (played.asked.length === 2 ? true : undefined));
    expect([...played.shedding.fractions].map(([name, { open }]) => [name, open])).toEqual([
      ['127.0.0.1', 2],
    ]);
    for (const done of played.open) done({ kind: 'unavailable', reason: 'no_leader', proposed: false }, 0);
    expect(played.shedding.fractions.get('127.0.0.1')?.open).toBe(0);
  });
});

function answerSome(count: number): void {
  for (const done of played.open.splice(0, count))
    done({ kind: 'unavailable', reason: 'no_leader', proposed: false }, 0);
}

describe('a client that sends more than a busy node can handle', () => {
  const OPEN_MAX = 10;

  async function overwhelmed(isBusy: boolean): Promise<ReturnType<PlayedListener['client']>> {
    played = await PlayedListener.listening({ openMax: OPEN_MAX });
    played.answer = undefined;
    played.shedding.isBusy = isBusy;
    const client = played.client();
    for (let i = 0; i < 4 * OPEN_MAX; i += 1) client.send('ALLOW', `user${i}`);
    await eventually('the maximum of commands is asked', () =>
      played.asked.length === OPEN_MAX ? true : undefined,
    );
    // Everything that waits now has waited too long.
    await new Promise((resolve) => setTimeout(resolve, 60));
    return client;
  }

  it('gets its waiting commands read later, and marked as late', async () => {
    const client = await overwhelmed(true);
    played.shedding.refused = true;
    answerSome(6);
    await eventually('all is read', () => (played.shedding.late.length === 3 * OPEN_MAX ? true : undefined));
    expect(played.asked).toHaveLength(OPEN_MAX);
    // Refusals are sent in the order of the commands.
    expect(await client.next(6)).not.toContainEqual(SHED);
    answerSome(4);
    const rest = await client.next(4 + 3 * OPEN_MAX);
    expect(rest.slice(4)).toEqual(Array.from({ length: 3 * OPEN_MAX }, () => SHED));
    expect(played.refusedUnread).toBe(3 * OPEN_MAX);
  });

  it('waits without being late while the node is not busy', async () => {
    const client = await overwhelmed(false);
    answerSome(6);
    await client.next(6);
    await eventually('the maximum is asked again', () =>
      played.asked.length === OPEN_MAX + 6 ? true : undefined,
    );
    expect(played.shedding.late).toEqual([]);
  });
});

describe('a client that does not finish a command', () => {
  it('is disconnected, even if it goes on sending bytes', async () => {
    played = await PlayedListener.listening({ commandMillisMax: 200 });
    const client = played.client();
    const bytes = encodeCommand('ALLOW', 'x'.repeat(1_000));
    let at = 0;
    const timer = setInterval(() => client.socket.write(bytes.subarray(at, (at += 1))), 10);
    try {
      await client.ended();
    } finally {
      clearInterval(timer);
    }
    expect(client.replies).toEqual([{ error: 'ERR Protocol error: a command must arrive within 200 ms' }]);
    expect(played.asked).toEqual([]);
  });

  it('is not one that finishes each command in time and sends half of the next one with it', async () => {
    const commandMillisMax = 400;
    played = await PlayedListener.listening({ commandMillisMax });
    const bytes = encodeCommand('PING');
    /** False if this machine was too slow for the client to be in time. */
    async function finishesInTime(client: RespClient): Promise<boolean> {
      let startedMillis = performance.now();
      client.socket.write(bytes.subarray(0, 4));
      for (let i = 0; i < 8; i += 1) {
        await new Promise((resolve) => setTimeout(resolve, 100));
        const writtenMillis = performance.now();
        client.socket.write(Buffer.concat([bytes.subarray(4), bytes.subarray(0, 4)]));
        const [reply] = await client.next(1);
        if (performance.now() - startedMillis >= commandMillisMax) return false;
        expect(reply).toBe('PONG');
        startedMillis = writtenMillis;
      }
      expect(client.isClosed).toBe(false);
      return true;
    }
    await eventually('a run in which the machine was fast enough', async () =>
      (await finishesInTime(played.client())) ? true : undefined,
    );
  });

  it('is not one that has sent nothing at all', async () => {
    played = await PlayedListener.listening({ commandMillisMax: 50 });
    const client = played.client();
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(await client.ask('PING')).toBe('PONG');
  });
});

describe('connections of one address', () => {
  it('are bounded in number', async () => {
    played = await PlayedListener.listening({ connectionsPerAddressMax: 1 });
    const first = played.client();
    expect(await first.ask('PING')).toBe('PONG');
    const second = played.client();
    await second.ended();
    expect(second.replies).toEqual([{ error: 'ERR max number of clients reached' }]);
    first.socket.destroy();
    await eventually('there is room again', async () => {
      const next = played.client();
      next.send('PING');
      await eventually('an answer', () => (next.replies.length > 0 ? true : undefined));
      return next.replies[0] === 'PONG' ? true : undefined;
    });
  });
});
