/** Tokens in the Redis protocol: the roles for each command. A revoked token is refused on every connection. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { COMMAND_ROLES } from '../../src/resp/command-roles.ts';
import { COMMAND_TABLE } from '../../src/resp/commands/all.ts';
import { AUTH_FAILURES_MAX } from '../../src/resp/commands/connection-commands.ts';
import { PlayedListener, type RespClient } from './fixtures.ts';

const NOAUTH = { error: 'NOAUTH Authentication required.' };
const WRONGPASS = { error: expect.stringMatching(/^WRONGPASS /) as string };
const NOPERM = { error: expect.stringMatching(/^NOPERM /) as string };
let played: PlayedListener;
let client: RespClient;

beforeEach(async () => {
  played = await PlayedListener.listening();
  played.access.close();
  client = played.client();
});
afterEach(async () => played.stop());

describe('the roles of commands', () => {
  it('name every command, and no other', () => {
    const names = COMMAND_TABLE.all.flatMap(({ name, subcommands }) => [
      name,
      ...(subcommands?.all ?? []).map((sub) => `${name}|${sub.name}`),
    ]);
    const containers = Object.keys(COMMAND_ROLES).filter((name) => !name.includes('|'));
    expect(containers.sort()).toEqual(COMMAND_TABLE.all.map(({ name }) => name).sort());
    for (const name of Object.keys(COMMAND_ROLES)) expect(names).toContain(name);
  });
});

describe('a client of a closed cluster', () => {
  it('can, without a token, only send one, send PING, and quit', async () => {
    const guarded = Object.keys(COMMAND_ROLES).filter(
      (name) => COMMAND_ROLES[name] !== 'anybody' && !name.includes('|'),
    );
    expect(guarded).toContain('ALLOW');
    for (const name of guarded) expect(await client.ask(name, 'ada')).toEqual(NOAUTH);
    expect(await client.ask('PING')).toBe('PONG');
    expect(await client.ask('HELLO', '3')).toMatchObject({ error: expect.stringMatching(/^NOAUTH HELLO/) });
    expect(await client.ask('QUIT')).toBe('OK');
    expect([played.asked, played.peeks, played.refunds]).toEqual([[], [], []]);
  });

  it.each([
    ['AUTH', 'decide-token'],
    ['AUTH', 'default', 'decide-token'],
    ['HELLO', '2', 'AUTH', 'default', 'decide-token'],
    ['HELLO', '3', 'AUTH', 'default', 'decide-token', 'SETNAME', 'gateway'],
  ])('is authenticated by %s %s %s', async (...command) => {
    expect(await client.ask(...command)).not.toHaveProperty('error');
    expect(await client.ask('ALLOW', 'ada')).toHaveLength(5);
    expect(played.asked).toHaveLength(1);
  });

  it('is refused with the role that it needs', async () => {
    await client.ask('AUTH', 'read-token');
    expect(await client.ask('ALLOW', 'ada')).toEqual({
      error: "NOPERM this token has role read, and 'allow' needs decide or admin",
    });
    expect(await client.ask('CLIENT', 'LIST')).toContain('id=1');
    await client.ask('AUTH', 'decide-token');
    expect(await client.ask('CLIENT', 'LIST')).toEqual(NOPERM);
    expect(await client.ask('CLIENT', 'ID')).toBe(1);
    await client.ask('AUTH', 'admin-token');
    expect(await client.ask('ALLOW', 'ada')).toHaveLength(5);
    expect(await client.ask('CLIENT', 'LIST')).toContain('id=1');
  });

  it('keeps its token when it sends a wrong one, and loses it with RESET', async () => {
    await client.ask('AUTH', 'decide-token');
    expect(await client.ask('AUTH', 'wrong')).toEqual(WRONGPASS);
    expect(await client.ask('AUTH', 'ada', 'decide-token')).toEqual(WRONGPASS);
    expect(await client.ask('ALLOW', 'ada')).toHaveLength(5);
    await client.ask('RESET');
    expect(await client.ask('ALLOW', 'ada')).toEqual(NOAUTH);
  });

  it('is refused from the first command after its token was revoked', async () => {
    await client.ask('AUTH', 'decide-token');
    expect(await client.ask('ALLOW', 'ada')).toHaveLength(5);
    played.access.callers.delete('decide-token');
    expect(await client.ask('ALLOW', 'ada')).toEqual(NOAUTH);
    expect(played.asked).toHaveLength(1);
  });

  it('is disconnected after a few wrong tokens', async () => {
    for (let i = 0; i < AUTH_FAILURES_MAX; i += 1) client.send('AUTH', 'wrong');
    client.send('PING');
    await client.ended();
    expect(client.replies).toEqual(Array.from({ length: AUTH_FAILURES_MAX }, () => WRONGPASS));
    expect(played.access.failures).toBe(AUTH_FAILURES_MAX);
  });

  it('is asked to try again while the node does not know the tokens', async () => {
    played.access.now = 'unknown';
    expect(await client.ask('ALLOW', 'ada')).toMatchObject({ error: expect.stringMatching(/^LOADING /) });
    expect(played.asked).toEqual([]);
  });
});

describe('a client of an open cluster', () => {
  it('that sent its token is not disconnected when the cluster closes', async () => {
    const other = played.client();
    played.access.now = 'open';
    expect(await client.ask('AUTH', 'decide-token')).toBe('OK');
    expect(await other.ask('ALLOW', 'ada')).toHaveLength(5);
    played.access.now = 'closed';
    expect(await client.ask('ALLOW', 'ada')).toHaveLength(5);
    expect(await other.ask('ALLOW', 'ada')).toEqual(NOAUTH);
  });
});
