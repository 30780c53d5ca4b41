/** `MATCH`: its request to the node, and its answers. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { decisionOf } from '../api/decision-of.ts';
import { eventually } from '../cluster/harness.ts';
import { PlayedListener, type RespClient } from './fixtures.ts';

const COUNT = 'ERR count must be an integer from 1 to 16, of the descriptors that follow';

function notUtf8(what: string): object {
  return { error: `ERR ${what} must be UTF-8, and some of its bytes are not` };
}

let played: PlayedListener;
let client: RespClient;

beforeEach(async () => {
  played = await PlayedListener.listening();
  client = played.client();
});

afterEach(() => played.stop());

describe('MATCH', () => {
  it('asks with its descriptors', async () => {
    await client.ask('MATCH', '2', 'user', 'žluť 😀', 'ip', '10.0.0.1');
    const descriptors = new Map([
      ['user', 'žluť 😀'],
      ['ip', '10.0.0.1'],
    ]);
    expect(played.asked).toEqual([{ descriptors }]);
  });

  it('accepts options after them in any order, in capitals or not', async () => {
    await client.ask('match', '1', 'user', 'ada', 'id', 'r1', 'At', '123', 'cost', '7');
    const descriptors = new Map([['user', 'ada']]);
    const options = { requestId: 'r1', timestampMillis: 123, cost: 7 };
    expect(played.asked).toEqual([{ descriptors, ...options }]);
  });

  it('distinguishes descriptors from options by their number, for any names', async () => {
    await client.ask('MATCH', '2', 'id', 'cost', 'COST', '5', 'COST', '2');
    const descriptors = new Map([
      ['id', 'cost'],
      ['COST', '5'],
    ]);
    expect(played.asked).toEqual([{ descriptors, cost: 2 }]);
  });

  it('answers that no wait helps if the key is blocked', async () => {
    const nothing = { limit: 0, remaining: 0, retryAfterMillis: 0, resetMillis: 0, windowMillis: 0 };
    const decision = decisionOf({ ...nothing, allowed: false, isBlocked: true });
    played.answer = { kind: 'decision', decision };
    expect(await client.ask('MATCH', '1', 'user', 'ada')).toEqual([0, 0, 0, -1, 0, decision.ruleId]);
    expect(await client.ask('ALLOW', 'ada')).toEqual([0, 0, 0, -1, 0]);
  });

  it('answers the wait if the block has an end', async () => {
    const nothing = { limit: 0, remaining: 0, retryAfterMillis: 1_500, resetMillis: 0, windowMillis: 0 };
    const decision = decisionOf({ ...nothing, allowed: false, isBlocked: true });
    played.answer = { kind: 'decision', decision };
    expect(await client.ask('MATCH', '1', 'user', 'ada')).toEqual([0, 0, 0, 1_500, 0, decision.ruleId]);
    expect(await client.ask('ALLOW', 'ada')).toEqual([0, 0, 0, 1_500, 0]);
    const ruleId = '30/60000ms+15';
    played.answer = { kind: 'decision', decision: { ...decision, ruleId } };
    expect(await client.ask('CL.THROTTLE', 'ada', '15', '30', '60')).toEqual([1, 16, 0, 2, 0]);
  });

  it.each([2, 3])('says that no rule matches, and that no wait helps, in RESP%i', async (version) => {
    await client.ask('HELLO', String(version));
    played.answer = { kind: 'unmatched', rulesVersion: 7 };
    expect(await client.ask('MATCH', '1', 'usr', 'ada')).toEqual([0, 0, 0, -1, 0, null, 'UNMATCHED']);
    expect(await client.ask('ALLOW', 'ada')).toEqual([0, 0, 0, -1, 0]);
    expect(played.listener.counts.answers).toMatchObject({ granted: 0, denied: 2 });
  });

  it('answers that no wait helps under a limit of 0', async () => {
    const decision = decisionOf({
      limit: 0,
      remaining: 0,
      allowed: false,
      retryAfterMillis: 60_000,
      resetMillis: 0,
    });
    played.answer = { kind: 'decision', decision };
    expect(await client.ask('MATCH', '1', 'user', 'ada')).toEqual([0, 0, 0, -1, 0, decision.ruleId]);
    expect(await client.ask('ALLOW', 'ada')).toEqual([0, 0, 0, -1, 0]);
  });

  it.each([2, 3])(
    'says in a seventh element that a restore denies it, while ALLOW has five integers, in RESP%i',
    async (version) => {
      await client.ask('HELLO', String(version));
      const decision = decisionOf({
        allowed: false,
        remaining: 0,
        retryAfterMillis: 5_000,
        restoredMillis: 5_000,
      });
      played.answer = { kind: 'decision', decision };
      const five = [0, 100, 0, 5_000, 59_001];
      expect(await client.ask('MATCH', '1', 'user', 'ada')).toEqual([...five, decision.ruleId, 'RESTORED']);
      expect(await client.ask('ALLOW', 'ada')).toEqual(five);
    },
  );

  it.each([2, 3])('answers five integers and the deciding rule in RESP%i', async (version) => {
    await client.ask('HELLO', String(version));
    const decision = decisionOf({ remaining: 42, ruleId: 'user/2' });
    played.answer = { kind: 'decision', decision };
    expect(await client.ask('MATCH', '1', 'user', 'ada')).toEqual([1, 100, 42, 0, 59_001, 'user/2']);
    const denial = { ...decision, allowed: false, remaining: 0, retryAfterMillis: 12_345 };
    played.answer = { kind: 'decision', decision: denial };
    expect(await client.ask('MATCH', '1', 'user', 'ada')).toEqual([0, 100, 0, 12_345, 59_001, 'user/2']);
  });

  it('shows that no node could decide and fail modes did', async () => {
    played.answer = {
      kind: 'degraded',
      allowed: true,
      ruleIds: ['user', 'net'],
      rulesVersion: 7,
      retryAfterMillis: 0,
    };
    expect(await client.ask('MATCH', '1', 'user', 'ada')).toEqual([1, -1, -1, 0, 0, 'user', 'DEGRADED']);
    played.answer = {
      kind: 'degraded',
      allowed: false,
      ruleIds: ['user'],
      rulesVersion: 7,
      retryAfterMillis: 70,
    };
    expect(await client.ask('MATCH', '1', 'user', 'ada')).toEqual([0, -1, -1, 70, 0, 'user', 'DEGRADED']);
  });

  it('answers a limit of -1 and no rule if no rule has a limit', async () => {
    played.answer = { kind: 'unlimited', rulesVersion: 7 };
    expect(await client.ask('MATCH', '1', 'user', 'ada')).toEqual([1, -1, -1, 0, 0, null]);
    client.send('MATCH', '1', 'user', 'ada');
    await client.next(1);
    expect(client.received.toString()).toMatch(/\*6\r\n:1\r\n:-1\r\n:-1\r\n:0\r\n:0\r\n\$-1\r\n$/);
  });

  it.each([
    [['MATCH', '1', 'user'], "ERR wrong number of arguments for 'match' command"],
    [['MATCH', 'user', 'ada', 'ip', '10.0.0.1'], COUNT],
    [['MATCH', '0', 'user', 'ada'], COUNT],
    [['MATCH', '17', 'user', 'ada'], COUNT],
    [['MATCH', '2', 'user', 'ada'], 'ERR count is 2, so 4 names and values must follow it'],
    [['MATCH', '1', 'user', 'ada', 'ip', '10.0.0.1'], 'ERR syntax error'],
    [['MATCH', '1', 'user', 'ada', 'COST'], 'ERR syntax error'],
    [['MATCH', '1', 'user', 'ada', 'COST', '1', 'COST', '1'], 'ERR syntax error'],
    [['MATCH', '1', 'user', 'ada', 'RULE', 'a'], 'ERR syntax error'],
    [['MATCH', '2', 'user', 'ada', 'user', 'eve'], 'ERR each descriptor must be named only once'],
    [['MATCH', '1', '', 'ada'], 'ERR the name of a descriptor must be text of 1 to 64 bytes'],
    [['MATCH', '1', 'user', 'ada', 'COST', '0'], 'ERR cost must be an integer from 1 to 1000000'],
    [['MATCH', '1', 'user', 'ada', 'ID', ''], 'ERR requestId must be text of 1 to 128 bytes'],
  ])('refuses invalid arguments: %j', async (args, error) => {
    expect(await client.ask(...args)).toEqual({ error });
    expect(played.asked).toEqual([]);
  });

  it('refuses texts that are not UTF-8', async () => {
    const bytes = Buffer.from('eda080', 'hex');
    expect(await client.ask('MATCH', '1', bytes, 'ada')).toEqual(notUtf8('the name of a descriptor'));
    expect(await client.ask('MATCH', '1', 'user', bytes)).toEqual(notUtf8('the value of a descriptor'));
    expect(await client.ask('MATCH', '1', 'user', 'ada', 'ID', bytes)).toEqual(notUtf8('requestId'));
    expect(played.asked).toEqual([]);
  });

  it('answers an error, and no grant, for any other answer of the node', async () => {
    played.answer = { kind: 'unavailable', reason: 'deadline', proposed: true };
    expect(await client.ask('MATCH', '1', 'user', 'ada')).toEqual({
      error:
        'UNAVAILABLE deadline the deciding node did not answer before the deadline; nothing was granted, but the request may have been counted',
    });
    played.answer = { kind: 'conflict', field: 'descriptors', message: 'the id is taken' };
    expect(await client.ask('MATCH', '1', 'user', 'ada')).toEqual({ error: 'ERR the id is taken' });
    played.answer = { kind: 'invalid', field: 'descriptors', message: 'there are no rules' };
    expect(await client.ask('MATCH', '1', 'user', 'ada')).toEqual({ error: 'ERR there are no rules' });
  });

  it('is answered in the order of the commands, and counted once', async () => {
    played.answer = undefined;
    client.send('MATCH', '1', 'user', 'ada');
    client.send('ALLOW', 'ada');
    const last = await eventually('both requests are open', () => played.open[1]);
    last({ kind: 'decision', decision: decisionOf() }, 0);
    expect(client.replies).toEqual([]);
    played.open[0]?.({ kind: 'unlimited', rulesVersion: 7 }, 0);
    expect(await client.next(2)).toEqual([
      [1, -1, -1, 0, 0, null],
      [1, 100, 42, 0, 59_001],
    ]);
    expect(played.reported).toHaveLength(2);
    expect(await client.ask('INFO')).toContain('quorate_granted:2');
  });

  it('is in the table of commands, with a key after the name of a descriptor', async () => {
    const [described] = (await client.ask('COMMAND', 'INFO', 'match')) as unknown[][];
    expect(described?.slice(0, 6)).toEqual(['match', -4, expect.anything(), 3, 3, 1]);
  });
});
