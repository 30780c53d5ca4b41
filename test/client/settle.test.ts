/** Tests how a client reports costs after the fact (settle). */
import { describe, expect, it } from 'vitest';
import { denialOf, grantOf, Played, unavailableOf, watched } from './played.ts';

const ADA = { userId: 'ada', cost: 1_500 };

describe('settle', () => {
  it('is sent with a new id, or with that of the caller', async () => {
    const played = new Played();
    const settled = watched(played.client.settle(ADA));
    void played.client.settle({ ...ADA, requestId: 'answer-7' });
    await played.settle();
    expect(played.last.requests).toEqual([
      { ...ADA, requestId: 'id-1', settle: true },
      { ...ADA, requestId: 'answer-7', settle: true },
    ]);
    played.last.answer(grantOf({ remaining: 0 }));
    await played.settle();
    expect(settled.value).toMatchObject({ kind: 'granted', remaining: 0 });
  });

  it('is sent even if the client remembers a denial of the user', async () => {
    const played = new Played();
    void played.client.allow({ userId: 'ada' });
    await played.settle();
    played.last.answer(denialOf({ retryAfterMillis: 60_000 }));
    await played.settle();
    void played.client.settle({ userId: 'ada' });
    await played.settle();
    expect(played.last.requests).toMatchObject([{ userId: 'ada', settle: true }]);
  });

  it('fails if no node could charge it, with any fail mode', async () => {
    const played = new Played({ deadlineMillis: 1_000, failMode: 'open' });
    const settled = watched(played.client.settle(ADA));
    await played.settle();
    played.last.answer(unavailableOf('overloaded', false));
    await played.settle();
    expect(settled.error?.code).toBe('UNAVAILABLE');
  });
});
