/**
 * `ShouldRateLimit`, called with Envoy's own protocol files: requests and their answers. Only a decision becomes OK.
 */
import { status } from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import { UNAVAILABLE_REASONS } from '../../src/api/refusals.ts';
import { messageType } from '../../src/grpc/protos.ts';
import { SHOULD_RATE_LIMIT } from '../../src/grpc/should-rate-limit.ts';
import { eventually } from '../cluster/harness.ts';
import { type EnvoyClient, entriesOf } from './envoy-client.ts';
import { ASKED, GRANTED, PlayedGrpc } from './fixtures.ts';

const REQUEST = messageType('envoy.service.ratelimit.v3.RateLimitRequest');

let played: PlayedGrpc;
let client: EnvoyClient;

async function open(...args: Parameters<typeof PlayedGrpc.open>): Promise<void> {
  played = await PlayedGrpc.open(...args);
  client = played.client();
}

afterEach(async () => {
  await played.close();
});

describe('a request that is granted', () => {
  it('is OK, with the status of each descriptor', async () => {
    await open();
    expect(await client.ask(ASKED)).toMatchObject({
      overallCode: 'OK',
      statuses: [
        {
          code: 'OK',
          currentLimit: { requestsPerUnit: 10, unit: 'MINUTE', name: 'per_user' },
          limitRemaining: 4,
          durationUntilReset: { seconds: 58, nanos: 250_000_000 },
        },
      ],
      responseHeadersToAdd: [],
    });
    expect(played.asked).toEqual([
      { domain: 'edge', lists: [{ entries: [{ key: 'user', value: 'ada' }], cost: 1 }] },
    ]);
    expect(played.reported).toEqual([{ kind: 'unlimited', rulesVersion: 7 }]);
    expect(played.listener.answers).toEqual({ granted: 1, denied: 0, invalid: 0, unavailable: 0 });
  });

  it('has headers for the client of the gateway, if the settings say so', async () => {
    await open({}, { responseHeaders: true });
    expect((await client.ask(ASKED)).responseHeadersToAdd).toMatchObject([
      { key: 'RateLimit-Limit', value: '10' },
      { key: 'RateLimit-Remaining', value: '4' },
      { key: 'RateLimit-Reset', value: '59' },
    ]);
  });
});

describe('the request to the node', () => {
  it('has the cost of the call, or 1, and its lists in their order', async () => {
    await open();
    const descriptors = [entriesOf({ b: '1', a: '2' }), entriesOf({ c: '' })];
    await client.ask({ domain: 'edge', descriptors, hitsAddend: 7 });
    await client.ask({ domain: 'edge', descriptors, hitsAddend: 0 });
    await client.ask({ domain: 'edge', descriptors, hitsAddend: 0xffff_ffff });
    expect(played.asked).toEqual(
      [7, 1, 1_000_001].map((cost) => ({
        domain: 'edge',
        lists: [
          {
            entries: [
              { key: 'b', value: '1' },
              { key: 'a', value: '2' },
            ],
            cost,
          },
          { entries: [{ key: 'c', value: '' }], cost },
        ],
      })),
    );
  });

  it('may state its limit', async () => {
    await open();
    const limit = { requestsPerUnit: 3, unit: 'HOUR' };
    await client.ask({ domain: 'edge', descriptors: [{ ...entriesOf({ a: 'b' }), limit }] });
    expect(played.asked).toMatchObject([{ lists: [{ limit: { limit: 3, windowMillis: 3_600_000 } }] }]);
  });

  it('may have another cost for a descriptor; 0 is a peek', async () => {
    await open();
    const entries = [{ key: 'a', value: 'b' }];
    const descriptors = [
      { entries, hits_addend: { value: 0 } },
      { entries, hits_addend: { value: 9 } },
      { entries },
    ];
    await client.bytes(SHOULD_RATE_LIMIT, REQUEST.encode({ domain: 'edge', descriptors, hits_addend: 2 }));
    expect(played.asked[0]?.lists.map(({ cost }) => cost)).toEqual([0, 9, 2]);
  });
});

describe('a request that is denied', () => {
  it('is OVER_LIMIT', async () => {
    await open();
    const [list] = GRANTED.kind === 'listed' ? GRANTED.lists : [];
    if (list?.kind !== 'limited' || list.limitStatus === undefined) throw new Error('no status of the limit');
    const limitStatus = { ...list.limitStatus, remaining: 0, retryAfterMillis: 1_001 };
    played.answer = {
      kind: 'listed',
      allowed: false,
      lists: [{ ...list, isOver: true, limitStatus }, { kind: 'free' }],
    };
    expect(await client.ask(ASKED)).toMatchObject({
      overallCode: 'OVER_LIMIT',
      statuses: [
        { code: 'OVER_LIMIT', limitRemaining: 0, durationUntilReset: { seconds: 1, nanos: 1_000_000 } },
        { code: 'OK', currentLimit: null, durationUntilReset: null },
      ],
    });
    expect(played.listener.answers.denied).toBe(1);
    // No partition was asked for a grant.
    expect(played.reported).toEqual([]);
  });
});

describe('a request with a descriptor that no rule matches', () => {
  it('is OVER_LIMIT by that one, without a limit or a time to wait', async () => {
    await open();
    const [list] = GRANTED.kind === 'listed' ? GRANTED.lists : [];
    const decided = { kind: 'unmatched', rulesVersion: 7 } as const;
    played.answer = { kind: 'listed', allowed: false, lists: [list!, { kind: 'unmatched' }], decided };
    expect(await client.ask(ASKED)).toMatchObject({
      overallCode: 'OVER_LIMIT',
      statuses: [
        { code: 'OK' },
        { code: 'OVER_LIMIT', currentLimit: null, limitRemaining: 0, durationUntilReset: null },
      ],
    });
    expect(played.listener.answers.denied).toBe(1);
    expect(played.reported).toEqual([decided]);
  });
});

describe('a request that no node can decide', () => {
  it.each(UNAVAILABLE_REASONS)(
    'is an error, so that the gateway does not take it for OK: %s',
    async (reason) => {
      await open();
      played.answer = { kind: 'unavailable', reason, proposed: true };
      const answered = await client.ask(ASKED);
      expect(answered).toMatchObject({ code: status.UNAVAILABLE });
      expect(answered.details).toContain(reason);
      expect(played.reported).toEqual([played.answer]);
      expect(played.listener.answers.unavailable).toBe(1);
    },
  );

  it('is an error at the deadline of its caller, and a later decision is no answer', async () => {
    await open();
    played.answer = undefined;
    // On a busy machine the deadline may pass before the request arrives.
    await eventually('a request that arrived', async () => {
      const answered = await client.ask(ASKED, { deadlineMillis: 300 });
      expect(answered).toMatchObject({ code: status.DEADLINE_EXCEEDED });
      return played.open[0];
    });
    for (const done of played.open) done(GRANTED);
    expect([...played.shedding.fractions.values()].map(({ open }) => open)).toEqual([0]);
    played.answer = GRANTED;
    expect(await client.ask(ASKED)).toMatchObject({ overallCode: 'OK' });
  });
});

function repeated(part: readonly number[], count: number): Buffer {
  return Buffer.from(Array.from({ length: count }, () => part).flat());
}

/** @param tag of a field that holds a message of less than 128 bytes */
function inOne(tag: number, message: Buffer): Buffer {
  return Buffer.concat([Buffer.from([tag, message.length]), message]);
}

describe('a request beyond its bounds', () => {
  const entries = [{ key: 'a', value: 'b' }];

  it.each([
    ['domain', { domain: '' }],
    ['domain', { domain: 'd'.repeat(129) }],
    ['descriptors', { descriptors: [] }],
    ['descriptors', { descriptors: Array.from({ length: 51 }, () => ({ entries })) }],
    ['descriptors[0].entries', { descriptors: [{}] }],
    ['descriptors[0].entries', { descriptors: [{ entries: Array.from({ length: 17 }, () => entries[0]!) }] }],
    ['descriptors[0].entries[0].key', { descriptors: [{ entries: [{ key: '' }] }] }],
    [
      'descriptors[0].entries[0].value',
      { descriptors: [{ entries: [{ key: 'a', value: 'x'.repeat(4_097) }] }] },
    ],
    [
      'descriptors[0].limit.unit',
      { descriptors: [{ entries, limit: { requestsPerUnit: 1, unit: 'YEAR' } }] },
    ],
  ])('is refused by naming %s, and the node is not asked: %#', async (field, changes) => {
    await open();
    const answered = await client.ask({ ...ASKED, ...changes });
    expect(answered).toMatchObject({ code: status.INVALID_ARGUMENT });
    expect(answered.details?.split(' ')[0]).toBe(field);
    expect(played.asked).toEqual([]);
    expect(played.listener.answers.invalid).toBe(1);
  });

  it.each([
    ['no message', Buffer.from([0xff, 0xff, 0xff])],
    ['cut', REQUEST.encode({ domain: 'edge', descriptors: [{ entries }] }).subarray(0, -1)],
    [
      'not UTF-8',
      Buffer.concat([REQUEST.encode({ descriptors: [{ entries }] }), Buffer.from([0x0a, 1, 0xff])]),
    ],
  ])('is refused if its bytes are %s', async (_, bytes) => {
    await open();
    expect(await client.bytes(SHOULD_RATE_LIMIT, bytes)).toMatchObject({ code: status.INVALID_ARGUMENT });
    expect(played.asked).toEqual([]);
  });

  it.each([
    ['descriptors', repeated([0x12, 0x00], 51), 'descriptors must be at most 50'],
    ['entries', inOne(0x12, repeated([0x0a, 0x00], 17)), 'descriptors[0].entries must be at most 16'],
    ['limits', inOne(0x12, repeated([0x12, 0x00], 2)), 'descriptors[0].limit must be at most 1'],
    ['unknown fields', repeated([0x78, 0x00], 9), 'fields must be at most 8'],
    [
      'texts of an entry',
      inOne(0x12, inOne(0x0a, repeated([0x0a, 0x00], 9))),
      'descriptors[0].entries[0].fields must be at most 8',
    ],
  ])('is refused at the first of too many %s, before the rest is read', async (_, parts, details) => {
    await open();
    // The bytes after them are not a message.
    const bytes = Buffer.concat([parts, Buffer.from([0xff])]);
    expect(await client.bytes(SHOULD_RATE_LIMIT, bytes)).toMatchObject({
      code: status.INVALID_ARGUMENT,
      details,
    });
    expect(played.asked).toEqual([]);
  });

  it.each([
    ['a domain as a number', [0x08, 0x04, 0x7a, 0x02]],
    ['descriptors as numbers', [0x10, 0x00]],
    ['an override that is longer than its length', [0x12, 0x03, 0x12, 0x01, 0x08]],
  ])('is refused with %s, which hides the next fields', async (_, bytes) => {
    await open();
    const descriptors = REQUEST.encode({ domain: 'edge', descriptors: [{ entries }] });
    const answered = await client.bytes(SHOULD_RATE_LIMIT, Buffer.concat([Buffer.from(bytes), descriptors]));
    expect(answered).toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: 'the bytes are not a RateLimitRequest',
    });
  });

  it('may have the maximum of parts', async () => {
    await open();
    const full = { entries: Array.from({ length: 16 }, (_, i) => ({ key: `k${i}`, value: 'v' })) };
    const bytes = REQUEST.encode({ domain: 'edge', descriptors: Array.from({ length: 50 }, () => full) });
    expect((await client.bytes(SHOULD_RATE_LIMIT, bytes)).code).toBeUndefined();
    expect(played.asked.map(({ lists }) => lists.length)).toEqual([50]);
  });

  it('is not read if it is too long', async () => {
    await open();
    const bytes = Buffer.alloc(32_769);
    expect(await client.bytes(SHOULD_RATE_LIMIT, bytes)).toMatchObject({ code: status.RESOURCE_EXHAUSTED });
  });
});

describe('a client that leaves', () => {
  it('is not counted as open any more once the answer is there', async () => {
    await open();
    played.answer = undefined;
    void client.ask(ASKED);
    await eventually('a request', () => played.open[0]);
    client.close();
    played.open[0]!(GRANTED);
    expect([...played.shedding.fractions.values()].map(({ open }) => open)).toEqual([0]);
  });
});
