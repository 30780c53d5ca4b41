/** Tests the forwarder: which answers a request gets when nodes answer, fail or are silent. */
import type { AllowRequest } from '../../src/api/request.ts';
import { describe, expect, it } from 'vitest';
import type { Answer } from '../../src/api/user-request.ts';
import { encodeAnswers } from '../../src/wire/answers.ts';
import { decodeRequests } from '../../src/wire/requests.ts';
import { FRAME_PAYLOAD_BYTES_MAX } from '../../src/wire/frame.ts';
import { decisionOf } from '../api/decision-of.ts';
import { carry, Side } from './forwarder-side.ts';
import { GRANT, notLeader, unavailable } from './fixtures.ts';

describe('a forwarded request', () => {
  it('has the remaining time of its deadline there, in whole milliseconds of both clocks', () => {
    const [a, b] = [new Side(1), new Side(2)];
    b.nowMillis = 70_000.25;
    a.forward({ userId: 'ada' }, 4, 250.9);
    // The request is sent at the end of the turn.
    a.forward({ userId: 'bob' }, 4, 300.9);
    a.nowMillis += 50;
    carry(a, b);
    expect(b.partition.asked.map(({ deadlineMillis }) => deadlineMillis)).toEqual([70_200, 70_250]);
  });

  it('that waited before it was read has that much less time', () => {
    const [a, b] = [new Side(1), new Side(2)];
    b.ageMillis = 200;
    const late = [a.forward({ userId: 'ada' }, 4, 200), a.forward({ userId: 'bob' }, 4, -3)];
    a.forward({ userId: 'cyd' }, 4, 300);
    carry(a, b);
    expect(b.partition.asked).toMatchObject([
      { request: { userId: 'cyd' }, deadlineMillis: b.nowMillis + 100 },
    ]);
    expect(late).toEqual([[unavailable('deadline', false)], [unavailable('deadline', false)]]);
  });

  it('is sent in one frame with the others of its turn', () => {
    const a = new Side(1);
    for (let i = 0; i < 10; i += 1) a.forward();
    expect(a.deferredCount).toBe(1);
    expect(a.sent).toEqual([]);
    a.flush();
    expect(a.sent.map(({ to, kind }) => [to, kind])).toEqual([[2, 'requests']]);
  });

  it('to a node without that partition gets no leader', () => {
    const [a, b] = [new Side(1), new Side(2)];
    const answers = a.forward({ userId: 'ada' }, 5);
    carry(a, b);
    expect(answers).toEqual([notLeader(0)]);
    expect(b.partition.asked).toEqual([]);
  });

  it('that could not be sent was certainly not proposed', () => {
    const a = new Side(1);
    a.reachable = false;
    const answers = a.forward();
    expect(answers).toEqual([]);
    a.flush();
    expect(answers).toEqual([notLeader(0)]);
    expect(a.forwarder.outstandingCount).toBe(0);
  });

  it('gets its own answer, for any order of the answers', () => {
    const [a, b] = [new Side(1), new Side(2)];
    const received = Array.from({ length: 20 }, (_, i) => a.forward({ userId: `user-${i}` }));
    carry(a, b);
    for (const asked of b.partition.asked.toReversed()) {
      asked.answer({ kind: 'decision', decision: decisionOf({ ruleId: asked.request.userId }) });
    }
    carry(a, b);
    expect(received.map(([first]) => first?.kind === 'decision' && first.decision.ruleId)).toEqual(
      received.map((_, i) => `user-${i}`),
    );
  });
});

describe('a broken connection', () => {
  it('makes the outcome of requests sent over it unknown, and of no others', () => {
    const a = new Side(1);
    const answers = a.forward();
    const elsewhere: Answer[] = [];
    a.forwarder.forward({
      to: 3,
      partition: 4,
      request: { userId: 'bob' },
      deadlineMillis: 9_000,
      relayTo: 0,
      done: (each) => elsewhere.push(each),
    });
    a.flush();
    a.forwarder.peerDisconnected(2);
    expect(answers).toEqual([unavailable('unknown_outcome', true)]);
    expect(elsewhere).toEqual([]);
    a.forwarder.peerDisconnected(2);
    expect(answers).toHaveLength(1);
  });

  it('makes later answers ignored', () => {
    const [a, b] = [new Side(1), new Side(2)];
    const answers = a.forward();
    carry(a, b);
    a.forwarder.peerDisconnected(2);
    b.partition.asked[0]?.answer(GRANT);
    carry(a, b);
    expect(answers).toEqual([unavailable('unknown_outcome', true)]);
  });

  it('does not affect requests that were never sent', () => {
    const a = new Side(1);
    const answers = a.forward();
    a.reachable = false;
    a.forwarder.peerDisconnected(2);
    a.flush();
    expect(answers).toEqual([notLeader(0)]);
    expect(a.sent).toEqual([]);
  });

  it('does not affect requests that are sent again because they were never sent', () => {
    const a = new Side(1);
    const again: Answer[] = [];
    const ask = (done: (answer: Answer) => void): void =>
      a.forwarder.forward({
        to: 2,
        partition: 4,
        request: { userId: 'bob' },
        deadlineMillis: 9_000,
        relayTo: 0,
        done,
      });
    ask(() => ask((answer) => again.push(answer)));
    a.forwarder.peerDisconnected(2);
    expect(again).toEqual([]);
    a.reachable = false;
    a.flush();
    expect(again).toEqual([notLeader(0)]);
  });
});

describe('an answer', () => {
  it('after the deadline is still passed on, because it names the leader', () => {
    const [a, b] = [new Side(1), new Side(2)];
    const answers = a.forward();
    carry(a, b);
    a.nowMillis += 999;
    a.forwarder.tick();
    expect(a.forwarder.outstandingCount).toBe(1);
    a.nowMillis += 1;
    a.forwarder.tick();
    expect(a.forwarder.outstandingCount).toBe(0);
    b.partition.asked[0]?.answer(notLeader(7));
    carry(a, b);
    expect(answers).toEqual([notLeader(7)]);
  });

  it('after the deadline and a broken connection is dropped', () => {
    const [a, b] = [new Side(1), new Side(2)];
    const answers = a.forward();
    carry(a, b);
    a.nowMillis += 1_000;
    a.forwarder.tick();
    a.forwarder.peerDisconnected(2);
    b.partition.asked[0]?.answer(notLeader(7));
    carry(a, b);
    expect(answers).toEqual([]);
  });

  it('after the deadline is ignored if very many came after it', () => {
    const [a, b] = [new Side(1), new Side(2)];
    const all = Array.from({ length: 4_097 }, () => a.forward());
    carry(a, b);
    a.nowMillis += 1_000;
    a.forwarder.tick();
    for (const asked of b.partition.asked) asked.answer(notLeader(7));
    carry(a, b);
    expect(all.filter((answers) => answers.length === 0)).toHaveLength(1);
    expect(all[0]).toEqual([]);
  });

  it('for an earlier process of this node matches no request', () => {
    const b = new Side(2);
    const earlier = new Side(1, 100);
    earlier.forward({ userId: 'ada' });
    carry(earlier, b);
    const later = new Side(1, 4_711_000);
    const answers = later.forward({ userId: 'bob' });
    later.flush();
    b.partition.asked[0]?.answer(GRANT);
    b.flush();
    for (const { payload } of b.sent.splice(0)) later.receiveAnswers(2, payload);
    expect(answers).toEqual([]);
    expect(later.forwarder.outstandingCount).toBe(1);
  });

  it('that comes twice counts once', () => {
    const [a, b] = [new Side(1), new Side(2)];
    b.partition.reply = () => GRANT;
    const answers = a.forward();
    a.flush();
    for (const { payload } of a.sent.splice(0)) b.forwarder.receiveRequests(1, decodeRequests(payload));
    b.flush();
    for (const { payload } of b.sent) a.receiveAnswers(2, payload);
    for (const { payload } of b.sent) a.receiveAnswers(2, payload);
    expect(answers).toEqual([GRANT]);
  });

  it('from a node that was not asked is ignored', () => {
    const a = new Side(1);
    const answers = a.forward();
    a.flush();
    const [asked] = decodeRequests(a.sent[0]?.payload ?? new Uint8Array(0));
    a.receiveAnswers(3, encodeAnswers([{ id: asked?.id ?? 0, answer: notLeader(9, 9) }]));
    expect(answers).toEqual([]);
  });
});

describe('many requests', () => {
  it('are split over frames far below the bound of one', () => {
    const [a, b] = [new Side(1), new Side(2)];
    b.partition.reply = () => GRANT;
    const large: AllowRequest = {
      userId: 'u'.repeat(256),
      ruleId: 'r'.repeat(128),
      requestId: 'q'.repeat(128),
      cost: 1_000_000,
      timestampMillis: 8_640_000_000_000_000,
    };
    const received = Array.from({ length: 10_000 }, () => a.forward(large));
    a.flush();
    expect(a.sent.length).toBeGreaterThan(1);
    expect(Math.max(...a.sent.map(({ payload }) => payload.length))).toBeLessThan(
      FRAME_PAYLOAD_BYTES_MAX / 4,
    );
    carry(a, b);
    expect(received.every((answers) => answers.length === 1)).toBe(true);
  });

  it('are refused beyond 65,536 on their way', () => {
    const a = new Side(1);
    for (let i = 0; i < 65_536; i += 1) a.forward();
    expect(a.forward()).toEqual([unavailable('overloaded', false)]);
    expect(a.forwarder.outstandingCount).toBe(65_536);
    a.nowMillis += 1_000;
    a.forwarder.tick();
    expect(a.forwarder.outstandingCount).toBe(0);
    expect(a.forward()).toEqual([]);
  });
});
