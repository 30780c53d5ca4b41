/** Tests load shedding of forwarded requests. */
import { describe, expect, it } from 'vitest';
import type { AllowRequest } from '../../src/api/request.ts';
import { GRANT, notLeader, unavailable } from './fixtures.ts';
import { carry, Side } from './forwarder-side.ts';

describe('a node that has too much to do', () => {
  it('refuses forwarded requests, which are then in no log, until it has answered others', () => {
    const [a, b] = [new Side(1), new Side(2)];
    b.partition.leader = 2;
    b.openMax = 1;
    const [first, second] = [a.forward(), a.forward()];
    carry(a, b);
    expect(b.partition.asked).toHaveLength(1);
    expect([first, second]).toEqual([[], [unavailable('overloaded', false)]]);
    b.partition.asked[0]?.answer(GRANT);
    const third = a.forward();
    carry(a, b);
    expect(first).toEqual([GRANT]);
    expect(third).toEqual([]);
    expect(b.openCount).toBe(1);
  });

  it('says that it does not lead rather than that it is overloaded, so that the asking node searches for the leader', () => {
    const [a, b] = [new Side(1), new Side(2)];
    b.openMax = 0;
    b.partition.reply = () => notLeader(3);
    const answers = a.forward();
    carry(a, b);
    expect(answers).toEqual([notLeader(3)]);
    expect(b.openCount).toBe(0);
  });

  it('does not refuse commands of operators', () => {
    const [a, b] = [new Side(1), new Side(2)];
    b.partition.leader = 2;
    b.openMax = 0;
    const request = { ask: 'customer', userId: 'ada', action: { type: 'read' } } as unknown as AllowRequest;
    a.forward(request);
    carry(a, b);
    expect(b.partition.asked).toHaveLength(1);
  });
});
