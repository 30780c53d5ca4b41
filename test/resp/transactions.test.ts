/** `MULTI` and `EXEC`: the answers of Redis and the bounds. Each command is decided separately. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AllowAnswer } from '../../src/api/answer.ts';
import { decisionOf } from '../api/decision-of.ts';
import { eventually } from '../cluster/harness.ts';
import { encodeCommand, PlayedListener, type RespClient } from './fixtures.ts';

const GRANT = [1, 100, 42, 0, 59_001];
const ABORTED = { error: 'EXECABORT Transaction discarded because of previous errors.' };
const BOUND = { error: 'ERR a transaction may have at most 1024 commands and 262144 bytes' };

let played: PlayedListener;
let client: RespClient;

beforeEach(async () => {
  played = await PlayedListener.listening();
  client = played.client();
});

afterEach(() => played.stop());

function withRemaining(remaining: number): AllowAnswer {
  return { kind: 'decision', decision: decisionOf({ remaining }) };
}

async function asked(count: number): Promise<void> {
  await eventually(`${count} requests were asked`, () => (played.asked.length >= count ? true : undefined));
}

describe('a transaction', () => {
  it('does not ask the node before EXEC, and then returns an array of the answers', async () => {
    expect(await client.ask('MULTI')).toBe('OK');
    expect(await client.ask('ALLOW', 'ada', 'COST', '2')).toBe('QUEUED');
    expect(await client.ask('PING', 'größer')).toBe('QUEUED');
    expect(await client.ask('PEEK', 'bob')).toBe('QUEUED');
    expect([played.asked, played.peeks]).toEqual([[], []]);
    expect(await client.ask('EXEC')).toEqual([GRANT, 'größer', [expect.any(Array)]]);
    expect(played.asked).toEqual([{ descriptors: new Map([['user', 'ada']]), cost: 2 }]);
    expect(await client.ask('PING')).toBe('PONG');
  });

  it('comes as one write, as the pipeline of redis-py sends it', async () => {
    const users = Array.from({ length: 100 }, (_, i) => `user-${i}`);
    const commands = [['MULTI'], ...users.map((user) => ['ALLOW', user]), ['EXEC']];
    client.socket.write(Buffer.concat(commands.map((command) => encodeCommand(...command))));
    const replies = await client.next(102);
    expect(replies).toEqual(['OK', ...users.map(() => 'QUEUED'), users.map(() => GRANT)]);
    expect(played.asked.map(({ descriptors }) => descriptors?.get('user'))).toEqual(users);
  });

  it('has each answer at its position, refusals included, for any order of the decisions', async () => {
    played.answer = undefined;
    for (const command of [['MULTI'], ['ALLOW', 'a'], ['ALLOW', ''], ['ALLOW', 'b'], ['EXEC'], ['PING']])
      client.send(...command);
    await asked(2);
    played.open[1]?.(withRemaining(2), 0);
    played.open[0]?.({ kind: 'unavailable', reason: 'no_leader', proposed: false }, 0);
    const [exec, ping] = (await client.next(6)).slice(4);
    expect(exec).toEqual([
      { error: expect.stringMatching(/^UNAVAILABLE no_leader/) },
      { error: expect.stringMatching(/^ERR userId/) },
      [1, 100, 2, 0, 59_001],
    ]);
    expect(ping).toBe('PONG');
  });

  it('without commands is answered with an empty array', async () => {
    await client.ask('MULTI');
    expect(await client.ask('EXEC')).toEqual([]);
  });

  it('is forgotten with DISCARD and with RESET', async () => {
    for (const [end, reply] of [
      ['DISCARD', 'OK'],
      ['RESET', 'RESET'],
    ] as const) {
      await client.ask('MULTI');
      await client.ask('ALLOW', 'ada');
      expect(await client.ask(end)).toBe(reply);
      expect(await client.ask('EXEC')).toEqual({ error: 'ERR EXEC without MULTI' });
    }
    expect(await client.ask('DISCARD')).toEqual({ error: 'ERR DISCARD without MULTI' });
    expect(played.asked).toEqual([]);
  });

  it.each([
    [['GET', 'x'], /^ERR unknown command 'GET'/],
    [['ALLOW'], /^ERR wrong number of arguments for 'allow' command/],
    [['SUBSCRIBE', 'news'], /^ERR SUBSCRIBE is not allowed in transactions/],
  ])('runs nothing if one of its commands is refused: %j', async (command, error) => {
    await client.ask('MULTI');
    expect(await client.ask('ALLOW', 'ada')).toBe('QUEUED');
    expect(await client.ask(...command)).toEqual({ error: expect.stringMatching(error) });
    expect(await client.ask('ALLOW', 'bob')).toBe('QUEUED');
    expect(await client.ask('EXEC')).toEqual(ABORTED);
    expect(await client.ask('PING')).toBe('PONG');
    expect(played.asked).toEqual([]);
  });

  it('is not begun twice: a second MULTI is refused, and the first goes on', async () => {
    await client.ask('MULTI');
    expect(await client.ask('MULTI')).toEqual({ error: 'ERR MULTI calls can not be nested' });
    await client.ask('ALLOW', 'ada');
    expect(await client.ask('EXEC')).toEqual([GRANT]);
  });

  it('runs with the token that is valid when it runs', async () => {
    played.access.close();
    await client.ask('AUTH', 'decide-token');
    await client.ask('MULTI');
    expect(await client.ask('ALLOW', 'ada')).toBe('QUEUED');
    await client.ask('EXEC');
    expect(played.asked).toHaveLength(1);
    await client.ask('MULTI');
    await client.ask('ALLOW', 'ada');
    played.access.callers.delete('decide-token');
    expect(await client.ask('EXEC')).toEqual({ error: 'NOAUTH Authentication required.' });
    expect(played.asked).toHaveLength(1);
  });
});

describe('the bounds of a transaction', () => {
  it('are 1,024 commands', async () => {
    client.send('MULTI');
    for (let i = 0; i < 1_024; i += 1) client.send('PING');
    await client.next(1_025);
    expect(await client.ask('PING')).toEqual(BOUND);
    expect(await client.ask('EXEC')).toEqual(ABORTED);
  });

  it('are 256 KiB, which are freed once they are exceeded', async () => {
    const text = 'x'.repeat(4_000);
    client.send('MULTI');
    for (let i = 0; i < 70; i += 1) client.send('ECHO', text);
    const replies = await client.next(71);
    expect(replies.filter((reply) => reply === 'QUEUED').length).toBeGreaterThan(50);
    expect(replies).toContainEqual(BOUND);
    expect(await client.ask('EXEC')).toEqual(ABORTED);
  });

  it('are those of unfinished commands for all clients together', async () => {
    await played.stop();
    played = await PlayedListener.listening({ allUnfinishedBytesMax: 16_384, commandMillisMax: 600_000 });
    client = played.client();
    client.send('MULTI');
    for (let i = 0; i < 5; i += 1) client.send('ECHO', 'x'.repeat(4_000));
    await client.ended();
    expect(client.replies.at(-1)).toEqual({ error: 'ERR Protocol error: too many commands are unfinished' });
    const other = played.client();
    other.send('MULTI');
    expect(await other.next(1)).toEqual(['OK']);
    expect(await other.ask('EXEC')).toEqual([]);
  });

  it('are the time that a command may take', async () => {
    await played.stop();
    played = await PlayedListener.listening({ commandMillisMax: 50 });
    client = played.client();
    await eventually('EXEC comes too late', async () => {
      await client.ask('MULTI');
      await client.ask('ALLOW', 'ada');
      await new Promise((resolve) => setTimeout(resolve, 60));
      const reply = await client.ask('EXEC');
      return JSON.stringify(reply) === JSON.stringify(ABORTED) ? true : undefined;
    });
    expect(await client.ask('PING')).toBe('PONG');
  });

  it('delay its commands while too many answers are open, and all of them run', async () => {
    await played.stop();
    played = await PlayedListener.listening({ openMax: 4 });
    played.answer = undefined;
    client = played.client();
    const users = Array.from({ length: 20 }, (_, i) => `user-${i}`);
    client.send('MULTI');
    for (const user of users) client.send('ALLOW', user);
    await client.next(21);
    client.send('EXEC');
    client.send('PING');
    await asked(3);
    expect(await played.client().ask('PING')).toBe('PONG');
    expect(played.asked.length).toBeLessThan(5);
    // The node closes its listeners in the middle of it.
    const closed = played.listener.close();
    for (let i = 0; i < 20; i += 1) {
      await asked(i + 1);
      played.open[i]?.(withRemaining(i), 0);
    }
    await client.ended();
    client.socket.end();
    await closed;
    expect(client.replies.at(-1)).toEqual(users.map((_, i) => [1, 100, i, 0, 59_001]));
  });
});
