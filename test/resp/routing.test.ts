/**
 * Clients of Redis Cluster send each command to the leader of its key's slot, so every command that asks for a grant
 * has a key.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { userKey } from '../../src/api/key-text.ts';
import { SLOT_COUNT } from '../../src/api/key-slot.ts';
import { partitionOf } from '../../src/partition/hash.ts';
import { PlayedListener, type RespClient } from './fixtures.ts';

let played: PlayedListener;
let client: RespClient;

beforeEach(async () => {
  played = await PlayedListener.listening();
  client = played.client();
});

afterEach(() => played.stop());

/** As clients read the table: the argument at the first key position. */
async function keyByTable(command: readonly string[]): Promise<string | undefined> {
  const [row] = (await client.ask('COMMAND', 'INFO', command[0] ?? '')) as unknown[][];
  const [first, last, step] = (row ?? []).slice(3, 6);
  expect([last, step]).toEqual([first, 1]);
  return Number(first) === 0 ? undefined : command[Number(first)];
}

describe.each([
  { command: ['ALLOW', 'ada', 'COST', '2'] },
  { command: ['PEEK', 'ada'] },
  { command: ['REFUND', 'ada', 'ID', 'r1'] },
  { command: ['CL.THROTTLE', 'ada', '15', '30', '60'] },
  { command: ['MATCH', '1', 'user', 'ada'] },
  { command: ['MATCH', '2', 'user', 'ada', 'ip', '10.0.0.1', 'COST', '2'] },
])('$command', ({ command }) => {
  it('has the key whose slot is that of the user, by COMMAND INFO and by COMMAND GETKEYS', async () => {
    expect(await keyByTable(command)).toBe('ada');
    expect(await client.ask('COMMAND', 'GETKEYS', ...command)).toEqual(['ada']);
  });
});

it('the slot of a value is that of the key that a rule with this descriptor alone makes', async () => {
  for (const user of ['ada', 'größer', 'a,b', '{tag}.x', 'x'.repeat(100)]) {
    const [key] = (await client.ask('COMMAND', 'GETKEYS', 'MATCH', '1', 'user', user)) as string[];
    const slot = await client.ask('CLUSTER', 'KEYSLOT', key ?? '');
    expect(slot).toBe(partitionOf(userKey(user) ?? '', SLOT_COUNT));
  }
});

it('a MATCH without a value has no key', async () => {
  expect(await client.ask('COMMAND', 'GETKEYS', 'MATCH', '1', 'user')).toEqual({
    error: 'ERR Invalid number of arguments specified for command',
  });
});
