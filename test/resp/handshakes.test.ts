/**
 * The commands that clients send before their first request. They are answered as in Redis, or refused so that clients
 * continue.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PlayedListener, type RespClient } from './fixtures.ts';

const CHANNEL = '__Booksleeve_MasterChanged';
let played: PlayedListener;
let client: RespClient;

beforeEach(async () => {
  played = await PlayedListener.listening();
  client = played.client();
});

afterEach(() => played.stop());

describe('CLIENT', () => {
  it('refuses notifications of maintenance as a Redis without them, and the client goes on', async () => {
    expect(
      await client.ask('CLIENT', 'MAINT_NOTIFICATIONS', 'ON', 'moving-endpoint-type', 'external-ip'),
    ).toEqual({ error: expect.stringMatching(/^ERR unknown subcommand 'MAINT_NOTIFICATIONS'/) });
    expect(await client.ask('ALLOW', 'ada')).toHaveLength(5);
  });

  it.each([[['OFF']], [['ON', 'OPTIN']], [['on', 'optin', 'noloop']]])(
    'accepts tracking without any key: %j',
    async (args) => {
      expect(await client.ask('CLIENT', 'TRACKING', ...args)).toBe('OK');
      expect(await client.ask('CLIENT', 'CACHING', 'YES')).toMatchObject({
        error: expect.stringMatching(/^ERR unknown subcommand 'CACHING'/),
      });
    },
  );

  it.each([[['ON']], [['ON', 'BCAST']], [['ON', 'OPTOUT']], [['ON', 'OPTIN', 'BCAST']], [['ON', 'NOLOOP']]])(
    'refuses tracking that would have to report changes: %j',
    async (args) => {
      expect(await client.ask('CLIENT', 'TRACKING', ...args)).toMatchObject({
        error: expect.stringMatching(/^ERR CLIENT TRACKING takes OFF, ON OPTIN and NOLOOP/),
      });
    },
  );

  it('accepts the names that a client sets', async () => {
    for (const args of [
      ['SETNAME', 'me'],
      ['SETINFO', 'LIB-NAME', 'redis-py'],
      ['SETINFO', 'LIB-VER', '5.2.1'],
      ['NO-EVICT', 'ON'],
      ['NO-TOUCH', 'ON'],
    ])
      expect(await client.ask('CLIENT', ...args)).toBe('OK');
  });
});

describe('SUBSCRIBE', () => {
  it('is answered for each channel, and UNSUBSCRIBE as well', async () => {
    client.send('SUBSCRIBE', CHANNEL, 'news', 'news');
    expect(await client.next(3)).toEqual([
      ['subscribe', CHANNEL, 1],
      ['subscribe', 'news', 2],
      ['subscribe', 'news', 2],
    ]);
    expect(await client.ask('UNSUBSCRIBE', 'news')).toEqual(['unsubscribe', 'news', 1]);
    expect(await client.ask('UNSUBSCRIBE', 'none')).toEqual(['unsubscribe', 'none', 1]);
    expect(await client.ask('UNSUBSCRIBE')).toEqual(['unsubscribe', CHANNEL, 0]);
    expect(await client.ask('UNSUBSCRIBE')).toEqual(['unsubscribe', null, 0]);
  });

  it('is answered as a push in RESP3, in which all commands still run', async () => {
    await client.ask('HELLO', '3');
    expect(await client.ask('SUBSCRIBE', CHANNEL)).toEqual(['subscribe', CHANNEL, 1]);
    expect(client.received.toString()).toContain('>3\r\n$9\r\nsubscribe\r\n');
    expect(await client.ask('PING')).toBe('PONG');
    expect(await client.ask('ALLOW', 'ada')).toHaveLength(5);
  });

  it('allows only the commands that Redis allows on such a connection in RESP2', async () => {
    await client.ask('SUBSCRIBE', CHANNEL);
    expect(await client.ask('PING')).toEqual(['pong', '']);
    expect(await client.ask('PING', 'there')).toEqual(['pong', 'there']);
    expect(await client.ask('ALLOW', 'ada')).toMatchObject({
      error: expect.stringMatching(/^ERR Can't execute 'allow': only \(P\|S\)SUBSCRIBE/),
    });
    expect(await client.ask('RESET')).toBe('RESET');
    expect(await client.ask('PING')).toBe('PONG');
    expect(await client.ask('ALLOW', 'ada')).toHaveLength(5);
    expect(played.asked).toHaveLength(1);
  });

  it('keeps a bounded number of channels', async () => {
    const names = Array.from({ length: 16 }, (_, i) => `channel-${i}`);
    const refused = { error: 'ERR a connection may subscribe to at most 16 channels of 128 bytes each' };
    expect(await client.ask('SUBSCRIBE', 'x'.repeat(129))).toEqual(refused);
    expect(await client.ask('SUBSCRIBE', ...names, 'one more')).toEqual(refused);
    client.send('SUBSCRIBE', ...names);
    expect((await client.next(16)).at(-1)).toEqual(['subscribe', 'channel-15', 16]);
    expect(await client.ask('SUBSCRIBE', 'one more')).toEqual(refused);
    expect(await client.ask('SUBSCRIBE', 'channel-0')).toEqual(['subscribe', 'channel-0', 16]);
  });

  it('returns the names of channels byte for byte', async () => {
    const channel = Buffer.from('ff00fe', 'hex');
    client.send('SUBSCRIBE', channel);
    client.send('QUIT');
    await client.ended();
    const expected = Buffer.concat([
      Buffer.from('*3\r\n$9\r\nsubscribe\r\n$3\r\n'),
      channel,
      Buffer.from('\r\n:1\r\n+OK\r\n'),
    ]);
    expect(client.received.toString('hex')).toBe(expected.toString('hex'));
  });
});
