/**
 * One connection: answers come in the order of the commands, every command has one, and a client cannot exceed its
 * limits.
 */
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type { AllowAnswer } from '../../src/api/answer.ts';
import { decisionOf } from '../api/decision-of.ts';
import { eventually } from '../cluster/harness.ts';
import { encodeCommand, PlayedListener } from './fixtures.ts';

/** Commands that waited longer than this for their turn are refused. */
const IN_LINE_MILLIS_MAX = 1_000;

let played: PlayedListener;

afterEach(() => played.stop());

function withRemaining(remaining: number): AllowAnswer {
  return { kind: 'decision', decision: decisionOf({ remaining }) };
}

/** The third number of an answer to `ALLOW`. */
function remainingOf(reply: unknown): unknown {
  return Array.isArray(reply) ? reply[2] : reply;
}

async function asked(count: number): Promise<void> {
  await eventually(`${count} requests were asked`, () => (played.asked.length >= count ? true : undefined));
}

describe('answers', () => {
  it('come in the order of the commands, for any order of the decisions', async () => {
    played = await PlayedListener.listening();
    played.answer = undefined;
    await fc.assert(
      fc.asyncProperty(fc.shuffledSubarray([...Array(12).keys()], { minLength: 12 }), async (order) => {
        played.open.length = 0;
        played.asked.length = 0;
        const client = played.client();
        for (let i = 0; i < 12; i += 1) {
          client.send('ALLOW', `u${i}`);
          client.send('ECHO', `e${i}`);
        }
        await asked(12);
        for (const i of order) played.open[i]?.(withRemaining(i), 0);
        const replies = await client.next(24);
        expect(replies.map((reply) => remainingOf(reply))).toEqual(
          [...Array(12).keys()].flatMap((i) => [i, `e${i}`]),
        );
        client.socket.destroy();
      }),
      { numRuns: 20 },
    );
  });

  it('wait only for those before them', async () => {
    played = await PlayedListener.listening();
    played.answer = undefined;
    const client = played.client();
    for (const user of ['a', 'b', 'c']) client.send('ALLOW', user);
    await asked(3);
    played.open[0]?.(withRemaining(0), 0);
    played.open[2]?.(withRemaining(2), 0);
    expect(remainingOf((await client.next(1))[0])).toBe(0);
    expect(await played.client().ask('PING')).toBe('PONG');
    expect(client.replies).toHaveLength(1);
    played.open[1]?.(withRemaining(1), 0);
    expect((await client.next(2)).map((reply) => remainingOf(reply))).toEqual([1, 2]);
  });

  it('that the node gives twice count once', async () => {
    played = await PlayedListener.listening();
    played.answer = undefined;
    const client = played.client();
    client.send('ALLOW', 'a');
    client.send('ALLOW', 'b');
    await asked(2);
    for (const remaining of [1, 2]) played.open[1]?.(withRemaining(remaining), 0);
    played.open[0]?.(withRemaining(0), 0);
    expect((await client.next(2)).map((reply) => remainingOf(reply))).toEqual([0, 1]);
    expect(await client.ask('PING')).toBe('PONG');
  });

  it('are given to a pipeline of 10,000 commands', async () => {
    played = await PlayedListener.listening();
    const commands = Array.from({ length: 10_000 }, (_, i) =>
      i % 3 === 0 ? encodeCommand('ECHO', String(i)) : encodeCommand('ALLOW', `u${i}`),
    );
    const replies = await eventually('a pipeline whose commands did not wait for a second', async () => {
      played.asked.length = 0;
      const client = played.client();
      const startedMillis = performance.now();
      client.socket.write(Buffer.concat(commands));
      const given = await client.next(10_000);
      client.socket.destroy();
      // The machine may stall between two turns.
      const isSlow = performance.now() - startedMillis > IN_LINE_MILLIS_MAX;
      return isSlow && JSON.stringify(given).includes('UNAVAILABLE overloaded') ? undefined : given;
    });
    expect(played.asked).toHaveLength(6_666);
    replies.forEach((reply, i) => expect(reply).toEqual(i % 3 === 0 ? String(i) : [1, 100, 42, 0, 59_001]));
  });

  it('still come to a client that has ended its side', async () => {
    played = await PlayedListener.listening();
    played.answer = undefined;
    const client = played.client();
    client.send('ALLOW', 'ada');
    client.socket.end(encodeCommand('PING'));
    await asked(1);
    expect(client.hasEnded).toBe(false);
    played.open[0]?.(withRemaining(9), 0);
    await client.ended();
    expect(client.replies.map((reply) => remainingOf(reply))).toEqual([9, 'PONG']);
  });

  it('of a client that left are dropped', async () => {
    played = await PlayedListener.listening();
    played.answer = undefined;
    const client = played.client();
    client.send('ALLOW', 'ada');
    await asked(1);
    client.socket.resetAndDestroy();
    await eventually('it is gone', async () =>
      (await played.listener.connectionCount()) === 0 ? true : undefined,
    );
    played.open[0]?.(withRemaining(9), 0);
    expect(await played.client().ask('PING')).toBe('PONG');
  });
});

describe('bytes that are no command', () => {
  it('are refused after earlier commands are answered, and end the connection', async () => {
    played = await PlayedListener.listening();
    played.answer = undefined;
    const client = played.client();
    client.send('ALLOW', 'ada');
    client.socket.write('*1\r\nx');
    client.send('ALLOW', 'bob');
    await asked(1);
    played.open[0]?.(withRemaining(9), 0);
    await client.ended();
    const error = "ERR Protocol error: expected '$', got 'x'";
    expect(client.replies.map((reply) => remainingOf(reply))).toEqual([9, { error }]);
    expect(played.asked).toHaveLength(1);
  });

  it.each(['POST / HTTP/1.1\r\n', 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n'])(
    'end the connection at once if they are an HTTP request, with any body: %j',
    async (head) => {
      played = await PlayedListener.listening();
      const client = played.client();
      client.socket.write(`${head}\r\nALLOW ada\r\n`);
      await client.ended();
      expect(await played.client().ask('PING')).toBe('PONG');
      expect(played.asked).toEqual([]);
    },
  );

  it('that never end are not read', async () => {
    played = await PlayedListener.listening();
    const client = played.client();
    const noise = Buffer.alloc(65_536, 0x78);
    const timer = setInterval(() => client.socket.write(noise), 1);
    await eventually('the connection is broken', () => (client.isClosed ? true : undefined));
    clearInterval(timer);
    expect(await played.client().ask('PING')).toBe('PONG');
  });
});

describe('the bounds of a connection', () => {
  it('allow a maximum of open answers, and more when half of them are sent', async () => {
    played = await PlayedListener.listening({ openMax: 8 });
    played.answer = undefined;
    const client = played.client();
    for (let i = 0; i < 20; i += 1) client.send('ALLOW', `u${i}`);
    await asked(8);
    expect(await played.client().ask('PING')).toBe('PONG');
    expect(played.asked).toHaveLength(8);
    for (let i = 0; i < 4; i += 1) played.open[i]?.(withRemaining(i), 0);
    await client.next(4);
    expect(await played.client().ask('PING')).toBe('PONG');
    expect(played.asked).toHaveLength(8);
    played.open[4]?.(withRemaining(4), 0);
    await asked(13);
    for (let i = 5; i < 20; i += 1) {
      await asked(i + 1);
      played.open[i]?.(withRemaining(i), 0);
    }
    expect((await client.next(16)).map((reply) => remainingOf(reply))).toEqual(
      Array.from({ length: 16 }, (_, i) => i + 4),
    );
  });

  it('stop reading from a client that reads no answers, until it does', async () => {
    played = await PlayedListener.listening({ unreadBytesMax: 65_536 });
    const client = played.client();
    client.socket.pause();
    const text = 'x'.repeat(4_000);
    const count = 5_000;
    const one = encodeCommand('ECHO', text);
    for (let i = 0; i < count; i += 1) client.socket.write(one);
    // The rest waits in the sockets, on the client's side.
    const backlog = await eventually('the listener reads no more', async () => {
      const before = client.socket.writableLength;
      for (let i = 0; i < 5; i += 1) await played.client().ask('PING');
      return before > 0 && client.socket.writableLength === before ? before : undefined;
    });
    expect(backlog).toBeGreaterThan(count * 1_000);
    client.socket.resume();
    await eventually('all is answered', () =>
      client.receivedBytes > count * text.length ? true : undefined,
    );
    expect(await client.next(count)).toEqual(Array.from({ length: count }, () => text));
  });

  it('bound the unfinished commands of all clients together, and do not affect clients without any', async () => {
    // None is disconnected for an unfinished command of ten seconds.
    const patient = { commandMillisMax: 600_000 };
    played = await PlayedListener.listening({ allUnfinishedBytesMax: 16_384, ...patient });
    const half = encodeCommand('ECHO', 'x'.repeat(4_000)).subarray(0, 3_000);
    const holders = [played.client(), played.client(), played.client()];
    for (const holder of holders) {
      holder.socket.write(half);
      // Each client's bytes are read before the next one writes.
      for (let i = 0; i < 3; i += 1) expect(await played.client().ask('PING')).toBe('PONG');
    }
    await holders[2]?.ended();
    expect(holders[2]?.replies).toEqual([{ error: 'ERR Protocol error: too many commands are unfinished' }]);
    expect(holders[0]?.replies).toEqual([]);
    // A client with unfinished bytes leaves, so there is room again.
    for (const holder of holders) holder.socket.destroy();
    await eventually('there is room again', async () => {
      const next = played.client();
      next.socket.write(half);
      next.socket.write(encodeCommand('ECHO', 'x'.repeat(4_000)).subarray(3_000));
      await eventually('an answer', () => (next.replies.length > 0 ? true : undefined));
      return typeof next.replies[0] === 'string' ? true : undefined;
    });
  });

  it('stop reading from clients that together hold too many unread answers; others are served', async () => {
    played = await PlayedListener.listening({ allUnreadBytesMax: 131_072 });
    const one = encodeCommand('ECHO', 'x'.repeat(4_000));
    const count = 6_000;
    const slow = Array.from({ length: 2 }, () => played.client());
    for (const client of slow) {
      client.socket.pause();
      for (let i = 0; i < count; i += 1) client.socket.write(one);
    }
    await eventually('the listener reads no more', async () => {
      const before = slow.map(({ socket }) => socket.writableLength);
      for (let i = 0; i < 5; i += 1) expect(await played.client().ask('PING')).toBe('PONG');
      const isStill = slow.every(({ socket }, i) => socket.writableLength === before[i]);
      return isStill && before.every((bytes) => bytes > 0) ? true : undefined;
    });
    for (const client of slow) client.socket.resume();
    for (const client of slow) expect(await client.next(count)).toHaveLength(count);
  });

  it('refuse a client beyond their number', async () => {
    played = await PlayedListener.listening({ connectionsMax: 2 });
    const [first, second] = [played.client(), played.client()];
    expect(await first.ask('PING')).toBe('PONG');
    expect(await second.ask('PING')).toBe('PONG');
    const third = played.client();
    await third.ended();
    expect(third.replies).toEqual([{ error: 'ERR max number of clients reached' }]);
    first.socket.destroy();
    await eventually('there is room again', async () => {
      const fourth = played.client();
      fourth.send('PING');
      await eventually('an answer', () => (fourth.replies.length > 0 ? true : undefined));
      return fourth.replies[0] === 'PONG' ? true : undefined;
    });
    expect(played.accepted).toBeGreaterThanOrEqual(4);
  });
});

describe('a listener that closes', () => {
  it('disconnects clients that wait for nothing, and answers the others first', async () => {
    played = await PlayedListener.listening();
    played.answer = undefined;
    const [idle, busy] = [played.client(), played.client()];
    expect(await idle.ask('PING')).toBe('PONG');
    busy.send('ALLOW', 'ada');
    await asked(1);
    let isClosed = false;
    const closed = played.listener.close().then(() => {
      isClosed = true;
    });
    await idle.ended();
    expect(isClosed).toBe(false);
    expect(busy.hasEnded).toBe(false);
    played.open[0]?.(withRemaining(9), 0);
    await busy.ended();
    expect(busy.replies.map((reply) => remainingOf(reply))).toEqual([9]);
    busy.socket.end();
    idle.socket.end();
    await closed;
  });

  it('disconnects clients with their next answer while it is still open', async () => {
    played = await PlayedListener.listening();
    const client = played.client();
    expect(await client.ask('PING')).toBe('PONG');
    played.wantsNoClients = true;
    expect(await client.ask('PING')).toBe('PONG');
    await client.ended();
  });

  it('can break connections that do not end', async () => {
    played = await PlayedListener.listening();
    played.answer = undefined;
    const client = played.client();
    client.send('ALLOW', 'ada');
    await asked(1);
    const closed = played.listener.close();
    played.listener.closeAllConnections();
    await closed;
    await client.ended();
    expect(client.replies).toEqual([]);
  });

  it('closes at once if it could not start listening', async () => {
    played = await PlayedListener.listening();
    await new PlayedListener().listener.close();
    expect(await played.client().ask('PING')).toBe('PONG');
  });
});
