/** Tests that an abort signal ends all waits on it, and that many waits add only one listener. */
import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { Played, watched } from './played.ts';

describe('callers that wait with one abort signal', () => {
  it('add one listener to it, all end when it aborts, and leave no listener behind', async () => {
    const played = new Played();
    const { signal } = new AbortController();
    const controller = new AbortController();
    const permits = ['ada', 'bob', 'bob'].map((userId) =>
      watched(played.client.waitForPermit({ userId }, { signal: controller.signal })),
    );
    const other = watched(played.client.waitForPermit({ userId: 'cy' }, { signal }));
    await played.settle();
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1);
    controller.abort();
    await played.settle();
    expect(permits.map(({ error }) => error?.code)).toEqual(['ABORTED', 'ABORTED', 'ABORTED']);
    expect(other).toEqual({});
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
    played.client.close();
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});
