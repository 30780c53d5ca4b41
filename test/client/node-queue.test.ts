/** Tests the queue of requests for a node: order, batches, and removal of requests that were settled meanwhile. */
import { describe, expect, it } from 'vitest';
import { NodeQueue } from '../../src/client/node-queue.ts';

const BOUNDS = { batchMax: 3, batchesPerNodeMax: 2 };

function waiting(name: number): { body: string; bytes: number; isWaiting: boolean } {
  return { body: String(name), bytes: 10, isWaiting: true };
}

describe('the queue of a node', () => {
  it('gives batches in order, at most a given number at a time', () => {
    const queue = new NodeQueue('http://a');
    for (let i = 0; i < 8; i += 1) queue.push(waiting(i));
    const bodies = (): string[] | undefined => queue.maybeTake(BOUNDS)?.map(({ body }) => body);
    expect([bodies(), bodies(), bodies()]).toEqual([['0', '1', '2'], ['3', '4', '5'], undefined]);
    queue.arrived();
    expect(bodies()).toEqual(['6', '7']);
    queue.arrived();
    queue.arrived();
    expect(queue.isIdle).toBe(true);
  });

  it('drops requests that were settled while they waited, also if no batch is taken', () => {
    const queue = new NodeQueue<ReturnType<typeof waiting>>('http://a');
    const alive: string[] = [];
    for (let i = 0; i < 10_000; i += 1) {
      const request = waiting(i);
      queue.push(request);
      if (i % 1_000 === 0) alive.push(request.body);
      else request.isWaiting = false;
    }
    expect(queue.length).toBeLessThan(1_100);
    expect(queue.takeAll().map(({ body }) => body)).toEqual(alive);
  });

  it('puts a request that is larger than the batch limit into its own batch', () => {
    const queue = new NodeQueue<ReturnType<typeof waiting>>('http://a');
    for (const bytes of [10, 600_000, 10]) queue.push({ ...waiting(bytes), bytes });
    expect(queue.maybeTake(BOUNDS)?.length).toBe(1);
    expect(queue.maybeTake(BOUNDS)?.length).toBe(1);
  });
});
