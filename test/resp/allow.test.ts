/** `ALLOW`: its request to the node, and its answers. Only a decision of the node can allow. */
import { afterEach, describe, expect, it } from 'vitest';
import { questionOf } from '../../src/api/question.ts';
import { decisionOf } from '../api/decision-of.ts';
import { PlayedListener, type RespClient } from './fixtures.ts';

let played: PlayedListener;
let client: RespClient;

async function open(): Promise<void> {
  played = await PlayedListener.listening();
  client = played.client();
}

afterEach(() => played.stop());

function notUtf8(field: string): object {
  return { error: `ERR ${field} must be UTF-8, and some of its bytes are not` };
}

describe('ALLOW', () => {
  it('asks for its key alone', async () => {
    await open();
    await client.ask('ALLOW', 'ada');
    expect(played.asked).toEqual([questionOf({ userId: 'ada' })]);
  });

  it('accepts its options in any order, in capitals or not', async () => {
    await open();
    await client.ask('allow', 'ada', 'id', 'r1', 'At', '123', 'RULE', 'burst', 'cost', '7');
    const request = { userId: 'ada', requestId: 'r1', timestampMillis: 123, rule: 'burst', cost: 7 };
    expect(played.asked).toEqual([questionOf(request)]);
  });

  it('accepts SETTLE among its options, once', async () => {
    await open();
    await client.ask('ALLOW', 'ada', 'COST', '7', 'SETTLE', 'ID', 'r1');
    await client.ask('ALLOW', 'ada', 'settle');
    expect(played.asked).toEqual([
      questionOf({ userId: 'ada', cost: 7, requestId: 'r1', settle: true }),
      questionOf({ userId: 'ada', settle: true }),
    ]);
    expect(await client.ask('ALLOW', 'ada', 'SETTLE', 'SETTLE')).toEqual({ error: 'ERR syntax error' });
  });

  it('accepts keys with letters outside ASCII', async () => {
    await open();
    await client.ask('ALLOW', 'žluť 😀');
    expect(played.asked).toEqual([questionOf({ userId: 'žluť 😀' })]);
  });

  it.each([2, 3])('answers five integers in RESP%i', async (version) => {
    await open();
    await client.ask('HELLO', String(version));
    const decision = decisionOf({ limit: 100, remaining: 42, retryAfterMillis: 0, resetMillis: 59_001 });
    played.answer = { kind: 'decision', decision };
    expect(await client.ask('ALLOW', 'ada')).toEqual([1, 100, 42, 0, 59_001]);
    const denial = { ...decision, allowed: false, remaining: 0, retryAfterMillis: 12_345 };
    played.answer = { kind: 'decision', decision: denial };
    expect(await client.ask('ALLOW', 'ada')).toEqual([0, 100, 0, 12_345, 59_001]);
  });

  it('asks as MATCH does with the one descriptor user', async () => {
    await open();
    await client.ask('ALLOW', 'ada');
    await client.ask('MATCH', '1', 'user', 'ada');
    await client.ask('ALLOW', 'ada', 'ID', 'r1', 'AT', '123', 'COST', '7');
    await client.ask('MATCH', '1', 'user', 'ada', 'ID', 'r1', 'AT', '123', 'COST', '7');
    const [allow, match, allowMore, matchMore] = played.asked;
    expect([match, matchMore]).toEqual([allow, allowMore]);
  });

  it('answers a limit of -1 if no rule has a limit', async () => {
    await open();
    played.answer = { kind: 'unlimited', rulesVersion: 7 };
    expect(await client.ask('ALLOW', 'ada')).toEqual([1, -1, -1, 0, 0]);
  });

  it.each([
    [true, 0, [1, -1, -1, 0, 0]],
    [false, 70, [0, -1, -1, 70, 0]],
  ])(
    'returns the result of fail modes if no node could decide: %j',
    async (allowed, retryAfterMillis, reported) => {
      await open();
      played.answer = { kind: 'degraded', allowed, ruleIds: ['user'], rulesVersion: 7, retryAfterMillis };
      expect(await client.ask('ALLOW', 'ada')).toEqual(reported);
    },
  );

  it.each([
    [['ALLOW'], "ERR wrong number of arguments for 'allow' command"],
    [['ALLOW', 'ada', 'COST'], 'ERR syntax error'],
    [['ALLOW', 'ada', 'COST', '1', 'COST', '1'], 'ERR syntax error'],
    [['ALLOW', 'ada', 'PRICE', '1'], 'ERR syntax error'],
    [['ALLOW', ''], 'ERR userId must be text of 1 to 256 bytes'],
    [['ALLOW', 'x'.repeat(257)], 'ERR userId must be text of 1 to 256 bytes'],
    [['ALLOW', '\ufeffada'], 'ERR userId must be text of 1 to 256 bytes'],
    [['ALLOW', 'ada', 'COST', '0'], 'ERR cost must be an integer from 1 to 1000000'],
    [['ALLOW', 'ada', 'COST', '1.5'], 'ERR cost must be an integer from 1 to 1000000'],
    [['ALLOW', 'ada', 'AT', '-1'], 'ERR timestampMillis must be an integer from 0 to 8640000000000000'],
    [['ALLOW', 'ada', 'RULE', ''], 'ERR rule must be text of 1 to 128 bytes'],
    [['ALLOW', 'ada', 'ID', 'x'.repeat(129)], 'ERR requestId must be text of 1 to 128 bytes'],
  ])('refuses invalid arguments: %j', async (args, error) => {
    await open();
    expect(await client.ask(...args)).toEqual({ error });
    expect(played.asked).toEqual([]);
  });

  it.each(['ff', 'c3', 'eda080'])('refuses texts that are not UTF-8: %s', async (hex) => {
    await open();
    const bytes = Buffer.from(hex, 'hex');
    expect(await client.ask('ALLOW', bytes)).toEqual(notUtf8('userId'));
    expect(await client.ask('ALLOW', 'ada', 'RULE', bytes)).toEqual(notUtf8('rule'));
    expect(await client.ask('ALLOW', 'ada', 'ID', bytes)).toEqual(notUtf8('requestId'));
    expect(played.asked).toEqual([]);
  });

  it('returns why no node could decide, and whether the request may count', async () => {
    await open();
    played.answer = { kind: 'unavailable', reason: 'no_leader', proposed: false };
    const text =
      'UNAVAILABLE no_leader no node could decide for this user before the deadline; nothing was granted';
    expect(await client.ask('ALLOW', 'ada')).toEqual({ error: text });
    played.answer = { kind: 'unavailable', reason: 'deadline', proposed: true };
    expect(await client.ask('ALLOW', 'ada')).toEqual({
      error:
        'UNAVAILABLE deadline the deciding node did not answer before the deadline; nothing was granted, but the request may have been counted',
    });
  });

  it('returns the refusal of a leader', async () => {
    await open();
    played.answer = { kind: 'invalid', field: 'cost', message: 'cost must be at most 3' };
    expect(await client.ask('ALLOW', 'ada')).toEqual({ error: 'ERR cost must be at most 3' });
    played.answer = { kind: 'conflict', field: 'cost', message: 'the id is taken' };
    expect(await client.ask('ALLOW', 'ada')).toEqual({ error: 'ERR the id is taken' });
  });
});
