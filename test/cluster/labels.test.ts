/**
 * Tests that partitions of a real cluster move to the nodes that the labels ask for, and that earlier grants still
 * count.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LabelChange } from '../../src/api/cluster-change.ts';
import { changeNodes } from '../../src/cli/nodes-command.ts';
import { eventually, TestCluster, WAIT_MILLIS_MAX } from './harness.ts';

describe('nodes of a running cluster with the same host label', () => {
  let cluster: TestCluster;

  beforeAll(async () => {
    const rules = [{ id: 'default', limit: 1, windowMillis: 3_600_000, clock: 'cluster' as const }];
    cluster = await TestCluster.start({ nodes: 4, partitions: 6, rules });
  });
  afterAll(async () => cluster.stop());

  async function label(change: LabelChange): Promise<string[]> {
    const lines: string[] = [];
    const node = `http://127.0.0.1:${cluster.port(3)}`;
    const print = (line: string): void => void lines.push(line);
    await changeNodes({ node, change: { label: change }, timeoutMillis: WAIT_MILLIS_MAX, print });
    return lines;
  }

  it('hold no copies of the same partition once they have the label, and no grant is forgotten', async () => {
    const users = Array.from({ length: 12 }, (_, i) => `u${i}`);
    for (const userId of users) expect((await cluster.decided(1, { userId })).status).toBe(200);
    await label({ node: 1, host: 'm', zone: 'a' });
    expect(await label({ node: 2, host: 'm' })).toContain('done: all partitions have moved');
    // The other nodes learn the labels later than the node that was asked.
    const { nodes, partitions } = await eventually('all nodes know it', async () => {
      const report = await cluster.status();
      const { version, settledVersion } = report;
      const isLabelled = report.nodes.every(({ id, host }) => (host === 'm') === id <= 2);
      const isPlaced = report.partitions.every(({ placed }) => placed);
      return isLabelled && isPlaced && version === settledVersion ? report : undefined;
    });
    expect(nodes.map(({ id, zone, host }) => [id, zone, host])).toEqual([
      [1, 'a', 'm'],
      [2, undefined, 'm'],
      [3, undefined, undefined],
      [4, undefined, undefined],
    ]);
    for (const { placed, replicas } of partitions) {
      const held = replicas.map(({ node }) => node);
      expect([placed, held.length, held.includes(1) && held.includes(2)]).toEqual([true, 3, false]);
    }
    for (const userId of users) expect((await cluster.decided(4, { userId })).status).toBe(429);
  });

  it('refuse an invalid label and name its bound', async () => {
    await expect(label({ node: 1, zone: 'a b' })).rejects.toThrow(/zone must be 1 to 128 letters/);
    await expect(label({ node: 9, zone: 'a' })).rejects.toThrow(/no node of this id/);
  });
});
