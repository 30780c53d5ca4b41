/** Commands that return bytes of the client (such as `ECHO`) return them unchanged, even if they are not UTF-8. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PlayedListener, type RespClient } from './fixtures.ts';

/** StackExchange.Redis sends such bytes in its handshake: they are not UTF-8, and contain a line end. */
const GUID = Buffer.from('ff00c3280d0a80e2a0bff09f00018dfe', 'hex');
const ALL_BYTES = Buffer.from(Array.from({ length: 256 }, (_, i) => i));

let played: PlayedListener;
let client: RespClient;

beforeEach(async () => {
  played = await PlayedListener.listening();
  client = played.client();
});

afterEach(() => played.stop());

function bulk(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')]);
}

/** All bytes until the connection ended. Decoding them as text would lose invalid UTF-8. */
async function received(): Promise<string> {
  client.send('QUIT');
  await client.ended();
  return client.received.toString('hex');
}

function expected(...parts: readonly Buffer[]): string {
  return Buffer.concat([...parts, Buffer.from('+OK\r\n')]).toString('hex');
}

describe.each([
  ['the id of a handshake', GUID],
  ['every possible byte', ALL_BYTES],
  ['a text', Buffer.from('größer')],
  ['nothing', Buffer.alloc(0)],
])('%s', (_, bytes) => {
  it.each(['ECHO', 'PING'])('is returned by %s', async (command) => {
    client.send(command, bytes);
    expect(await received()).toBe(expected(bulk(bytes)));
  });

  it('is returned as the key of a command', async () => {
    client.send('COMMAND', 'GETKEYS', 'ALLOW', bytes);
    expect(await received()).toBe(expected(Buffer.from('*1\r\n'), bulk(bytes)));
  });
});

it('stays in an answer while the next command is read', async () => {
  const texts = Array.from({ length: 50 }, (_, i) => Buffer.alloc(4_000, 0x80 + i));
  for (const text of texts) client.send('ECHO', text);
  expect(await received()).toBe(expected(...texts.map(bulk)));
});
