/** `PEEK` and `REFUND`: their requests to the node. None of their answers can be mistaken for a grant. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { questionOf } from '../../src/api/question.ts';
import { limitStatusOf } from '../api/decision-of.ts';
import { eventually } from '../cluster/harness.ts';
import { PlayedListener, type RespClient } from './fixtures.ts';

const DECIDED = { term: 2, index: 7, timeMillis: 90 };
const TEXT_256 = 'must be text of 1 to 256 bytes';
const TEXT_128 = 'must be text of 1 to 128 bytes';

let played: PlayedListener;
let client: RespClient;

beforeEach(async () => {
  played = await PlayedListener.listening();
  client = played.client();
});

afterEach(() => played.stop());

describe('PEEK', () => {
  it('asks for all rules of its key, or for one', async () => {
    await client.ask('PEEK', 'ada');
    await client.ask('peek', 'žluť 😀', 'rule', '100/60000ms');
    expect(played.peeks).toEqual([{ key: 'user=ada' }, { key: 'user=žluť 😀', rule: '100/60000ms' }]);
    expect(played.asked).toEqual([]);
  });

  it.each([2, 3])('answers a row for each rule in RESP%i', async (version) => {
    await client.ask('HELLO', String(version));
    const slow = { ruleId: 'slow', limit: 5, remaining: 0, retryAfterMillis: 12_345, windowMillis: 600_000 };
    const limits = [limitStatusOf(), limitStatusOf(slow)];
    played.keyStatus = { kind: 'keyStatus', keyStatus: { limits, decided: DECIDED, rulesVersion: 7 } };
    expect(await client.ask('PEEK', 'ada')).toEqual([
      ['default', 100, 42, 0, 59_001, 60_000],
      ['slow', 5, 0, 12_345, 59_001, 600_000],
    ]);
  });

  it('says at the end of a row that a restore denies it', async () => {
    const limits = [limitStatusOf({ restoredMillis: 5_000 }), limitStatusOf()];
    played.keyStatus = { kind: 'keyStatus', keyStatus: { limits, decided: DECIDED, rulesVersion: 7 } };
    expect(await client.ask('PEEK', 'ada')).toEqual([
      ['default', 100, 42, 0, 59_001, 60_000, 'RESTORED'],
      ['default', 100, 42, 0, 59_001, 60_000],
    ]);
  });

  it('shows that a key which no rule matches is denied', async () => {
    const keyStatus = { limits: [], decided: DECIDED, rulesVersion: 7, isUnmatched: true } as const;
    played.keyStatus = { kind: 'keyStatus', keyStatus };
    expect(await client.ask('PEEK', 'ada')).toEqual([['unmatched', 0, 0, -1, 0, 0]]);
  });

  it('with one rule returns one row', async () => {
    client.send('PEEK', 'ada', 'RULE', 'default');
    await client.next(1);
    expect(client.received.toString()).toBe(
      '*1\r\n*6\r\n$7\r\ndefault\r\n:100\r\n:42\r\n:0\r\n:59001\r\n:60000\r\n',
    );
  });

  it.each([
    [['PEEK'], "ERR wrong number of arguments for 'peek' command"],
    [['PEEK', 'ada', 'RULE'], 'ERR syntax error'],
    [['PEEK', 'ada', 'COST', '1'], 'ERR syntax error'],
    [['PEEK', 'ada', 'RULE', 'a', 'RULE', 'b'], 'ERR syntax error'],
    [['PEEK', ''], `ERR userId ${TEXT_256}`],
    [['PEEK', 'x'.repeat(257)], `ERR userId ${TEXT_256}`],
    [['PEEK', 'ada', 'RULE', ''], `ERR rule ${TEXT_128}`],
    [['PEEK', 'ada', 'RULE', 'x'.repeat(129)], `ERR rule ${TEXT_128}`],
  ])('refuses invalid arguments: %j', async (args, error) => {
    expect(await client.ask(...args)).toEqual({ error });
    expect(played.peeks).toEqual([]);
  });

  it('refuses texts that are not UTF-8', async () => {
    const bytes = Buffer.from('c3', 'hex');
    const notUtf8 = 'must be UTF-8, and some of its bytes are not';
    expect(await client.ask('PEEK', bytes)).toEqual({ error: `ERR userId ${notUtf8}` });
    expect(await client.ask('PEEK', 'ada', 'RULE', bytes)).toEqual({ error: `ERR rule ${notUtf8}` });
    expect(played.peeks).toEqual([]);
  });

  it('waits unread while the open answers may exceed the memory that a client may use', async () => {
    const rule = { id: 'default', limit: 100, windowMillis: 60_000, clock: 'request' } as const;
    const rules = Array.from({ length: 1_024 }, (_, i) => ({ ...rule, id: `rule-${i}` }));
    played.rules = {
      version: 1,
      rules,
      requestIdHorizonMillis: 120_000,
      clockDriftPpm: 500,
      partitionBytesMax: 4_096,
    };
    const limits = rules.map(({ id }) => limitStatusOf({ ruleId: id }));
    const answer = { kind: 'keyStatus', keyStatus: { limits, decided: DECIDED, rulesVersion: 7 } } as const;
    played.keyStatus = undefined;
    for (let i = 0; i < 5; i += 1) client.send('PEEK', 'ada');
    for (let i = 0; i < 5; i += 1) {
      const done = await eventually('the next is asked', () => played.openPeeks[i]);
      // Everything that has arrived by now was read.
      await played.client().ask('PING');
      expect(played.openPeeks).toHaveLength(i + 1);
      done(answer, 0);
      const [rows] = await client.next(1);
      expect(rows).toHaveLength(1_024);
    }
  });

  it('with few rules may be sent many times at once', async () => {
    played.keyStatus = undefined;
    for (let i = 0; i < 1_000; i += 1) client.send('PEEK', 'ada');
    const asked = await eventually('all are asked', () =>
      played.openPeeks.length >= 1_000 ? played.openPeeks.length : undefined,
    );
    expect(asked).toBe(1_000);
  });

  it('returns the refusal of a leader, and why no node could answer', async () => {
    played.keyStatus = { kind: 'invalid', field: 'rule', message: "there is no rule 'x'" };
    expect(await client.ask('PEEK', 'ada', 'RULE', 'x')).toEqual({ error: "ERR there is no rule 'x'" });
    played.keyStatus = { kind: 'unavailable', reason: 'no_leader', proposed: false };
    expect(await client.ask('PEEK', 'ada')).toEqual({
      error:
        'UNAVAILABLE no_leader no node could decide for this user before the deadline; nothing was counted',
    });
  });
});

describe('REFUND', () => {
  it('asks for the grant of its key under the id', async () => {
    await client.ask('REFUND', 'ada', 'ID', 'r1');
    await client.ask('refund', 'žluť 😀', 'id', 'r 2');
    expect(played.refunds).toEqual([
      { ...questionOf({ userId: 'ada' }), requestId: 'r1' },
      { ...questionOf({ userId: 'žluť 😀' }), requestId: 'r 2' },
    ]);
    expect(played.asked).toEqual([]);
  });

  it('answers with the rule and the cost of the grant', async () => {
    client.send('REFUND', 'ada', 'ID', 'r1');
    await client.next(1);
    expect(client.received.toString()).toBe('*3\r\n:1\r\n$7\r\ndefault\r\n:2\r\n');
  });

  it.each([
    [2, '*3\r\n:0\r\n$-1\r\n:0\r\n'],
    [3, '*3\r\n:0\r\n_\r\n:0\r\n'],
  ])('says that no grant is remembered under the id in RESP%i', async (version, bytes) => {
    await client.ask('HELLO', String(version));
    const { length } = client.received;
    played.refunded = {
      kind: 'refund',
      refund: { refunded: false, ruleId: '', cost: 0, decided: DECIDED, rulesVersion: 7 },
      kept: [],
    };
    expect(await client.ask('REFUND', 'ada', 'ID', 'r1')).toEqual([0, null, 0]);
    expect(client.received.subarray(length).toString()).toBe(bytes);
  });

  it.each([
    [['REFUND', 'ada'], "ERR wrong number of arguments for 'refund' command"],
    [['REFUND', 'ada', 'r1'], "ERR wrong number of arguments for 'refund' command"],
    [['REFUND', 'ada', 'ID', 'r1', 'x'], 'ERR syntax error'],
    [['REFUND', 'ada', 'RULE', 'r1'], 'ERR syntax error'],
    [['REFUND', '', 'ID', 'r1'], `ERR userId ${TEXT_256}`],
    [['REFUND', 'ada', 'ID', ''], `ERR requestId ${TEXT_128}`],
    [['REFUND', 'ada', 'ID', 'x'.repeat(129)], `ERR requestId ${TEXT_128}`],
  ])('refuses invalid arguments: %j', async (args, error) => {
    expect(await client.ask(...args)).toEqual({ error });
    expect(played.refunds).toEqual([]);
  });

  it('refuses texts that are not UTF-8', async () => {
    const bytes = Buffer.from('ff', 'hex');
    const notUtf8 = 'must be UTF-8, and some of its bytes are not';
    expect(await client.ask('REFUND', bytes, 'ID', 'r1')).toEqual({ error: `ERR userId ${notUtf8}` });
    expect(await client.ask('REFUND', 'ada', 'ID', bytes)).toEqual({ error: `ERR requestId ${notUtf8}` });
    expect(played.refunds).toEqual([]);
  });

  it('returns why no node could decide, and whether the refund may be done', async () => {
    played.refunded = { kind: 'unavailable', reason: 'overloaded', proposed: false };
    expect(await client.ask('REFUND', 'ada', 'ID', 'r1')).toEqual({
      error: 'UNAVAILABLE overloaded too many requests are waiting for a decision; nothing was refunded',
    });
    played.refunded = { kind: 'unavailable', reason: 'deadline', proposed: true };
    expect(await client.ask('REFUND', 'ada', 'ID', 'r1')).toEqual({
      error:
        'UNAVAILABLE deadline the deciding node did not answer before the deadline; it may have been refunded, and may be asked for again',
    });
  });
});

describe('PEEK and REFUND', () => {
  it('are answered in the order of the commands, for any order of the decisions', async () => {
    const { keyStatus, refunded } = played;
    played.keyStatus = undefined;
    played.refunded = undefined;
    client.send('PEEK', 'ada');
    client.send('REFUND', 'ada', 'ID', 'r1');
    client.send('PING');
    await eventually('both are asked', () => played.openRefunds[0]);
    if (refunded !== undefined) played.openRefunds[0]?.(refunded, 0);
    if (keyStatus !== undefined) played.openPeeks[0]?.(keyStatus, 0);
    expect(await client.next(3)).toEqual([
      [['default', 100, 42, 0, 59_001, 60_000]],
      [1, 'default', 2],
      'PONG',
    ]);
  });

  it('are in the table of commands, with their key', async () => {
    expect(await client.ask('COMMAND', 'INFO', 'peek', 'refund')).toEqual([
      ['peek', -2, ['readonly', 'fast'], 1, 1, 1, [], [], [], []],
      ['refund', -4, ['write', 'fast'], 1, 1, 1, [], [], [], []],
    ]);
    expect(await client.ask('COMMAND', 'GETKEYS', 'REFUND', 'ada', 'ID', 'r1')).toEqual(['ada']);
    expect(await client.ask('COMMAND', 'DOCS', 'peek', 'refund')).toEqual([
      'peek',
      expect.arrayContaining([expect.stringMatching(/^Reads the status of a user/)]),
      'refund',
      expect.arrayContaining([expect.stringMatching(/^Takes back the grant/)]),
    ]);
  });
});
