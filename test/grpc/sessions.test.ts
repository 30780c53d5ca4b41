/** The number of calls that one client may send before it could have received an answer. */
import type { Http2Session } from 'node:http2';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { Sessions } from '../../src/grpc/sessions.ts';

class PlayedSession {
  destroyed = false;

  destroy(): void {
    this.destroyed = true;
  }
}

/** Returns how many of `calls` are accepted in one turn of the event loop. */
function taken(sessions: Sessions, session: PlayedSession, calls: number, isDecision: boolean): number {
  let count = 0;
  for (let i = 0; i < calls; i += 1)
    if (sessions.maybeCall(session as unknown as Http2Session, isDecision)) count += 1;
  return count;
}

describe('a client that does not wait for answers', () => {
  it.each([
    ['calls that no gateway makes', false, 256],
    ['decisions', true, 4_096],
  ] as const)('is disconnected after too many %s', (_, isDecision, most) => {
    const sessions = new Sessions({ monotonicMillis: () => 0 }, { leaveMillis: 1 });
    const [greedy, other] = [new PlayedSession(), new PlayedSession()];
    expect(taken(sessions, greedy, most + 10, isDecision)).toBe(most);
    expect(greedy.destroyed).toBe(true);
    expect(taken(sessions, other, most, isDecision)).toBe(most);
    expect(other.destroyed).toBe(false);
  });

  it('may send as many again in the next turn', async () => {
    const sessions = new Sessions({ monotonicMillis: () => 0 }, { leaveMillis: 1 });
    const session = new PlayedSession();
    for (let turn = 0; turn < 3; turn += 1) {
      expect(taken(sessions, session, 256, false)).toBe(256);
      await nextTurn();
    }
    expect(session.destroyed).toBe(false);
  });
});
