/**
 * Tests which listeners a joining node opens: those of the other nodes, or those of its options; or it says that it
 * cannot know.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { NodeAddress } from '../../src/api/node-address.ts';
import { withListeners } from '../../src/cli/join-listeners.ts';
import { localAddress, readCluster } from '../../src/config/cluster-directory.ts';
import { temporaryDirectory } from '../cluster/harness.ts';
import { ran } from './command.ts';

const LOCAL = [1, 2, 3].map((id) => localAddress(id, 8_100));
const FOUR = localAddress(4, 8_100);
const { resp: _resp, grpc: _grpc, ...ASKED } = FOUR;
const MACHINES = ['10.0.0.1', '10.0.0.2'].map((host, i) => machine(i + 1, host));

function machine(id: number, host: string, http = 80): NodeAddress {
  return { id, http: { host, port: http }, peer: { host, port: 90 }, resp: { host, port: 6_379 } };
}

describe('a node that joins', () => {
  it('opens the listeners of the other nodes, at the same distance from the HTTP port', () => {
    expect(withListeners(ASKED, LOCAL)).toEqual(FOUR);
    expect(withListeners(ASKED, LOCAL.slice(0, 1))).toEqual(FOUR);
  });

  it('opens the port that all other nodes use, at its own host', () => {
    const { resp, ...asked } = machine(3, '10.0.0.3', 81);
    expect(withListeners(asked, MACHINES)).toEqual({ ...asked, resp });
  });

  it('opens no listener that no other node has', () => {
    const plain = LOCAL.map(({ id, http, peer }) => ({ id, http, peer }));
    expect(withListeners(ASKED, plain)).toEqual(ASKED);
    expect(withListeners(ASKED, [])).toEqual(ASKED);
  });

  it('opens the listeners of its options', () => {
    const resp = { host: 'a', port: 1 };
    expect(withListeners({ ...ASKED, resp, grpc: false }, LOCAL)).toEqual({ ...ASKED, resp });
  });

  it('keeps its listeners in cluster.json if the join is repeated', () => {
    const listed = { ...ASKED, resp: { host: 'a', port: 1 } };
    expect(withListeners(ASKED, [...LOCAL, listed])).toEqual(listed);
  });

  it('needs an option if the ports of the others follow no pattern, or the pattern leaves no room', () => {
    const odd = LOCAL.map((node, i) => ({ ...node, resp: { host: 'a', port: 7_000 + i * i } }));
    expect(() => withListeners(ASKED, odd)).toThrow(
      '--resp must be given, as host:port, or --no-resp for none',
    );
    const high = { ...ASKED, http: { host: 'a', port: 65_000 } };
    expect(() => withListeners(high, LOCAL)).toThrow('--resp must be given');
    expect(withListeners({ ...ASKED, resp: false }, odd)).toEqual({ ...ASKED, grpc: FOUR.grpc });
  });
});

describe('quorate join', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await temporaryDirectory();
    await ran(['init', '--nodes', '1'], directory);
  });
  afterAll(() => rm(directory, { recursive: true }));

  it('gives a node the listeners that init gave the others, and says so', async () => {
    const at = ['--http', '10.0.0.4:8104', '--peer', '10.0.0.4:9104'];
    const { code, stdout } = await ran(['join', '4', ...at], directory);
    expect(stdout).toContain(
      'it will listen: HTTP 10.0.0.4:8104, peers 10.0.0.4:9104, Redis protocol 10.0.0.4:10104, gRPC 10.0.0.4:11104',
    );
    expect(code).toBe(0);
    await ran(['join', '5', '--http', 'b:1', '--peer', 'b:2', '--no-resp', '--grpc', 'b:3'], directory);
    const { nodes = [] } = (await readCluster(join(directory, 'data'))) ?? {};
    expect(nodes.map((node) => Object.keys(node))).toEqual([
      ['id', 'http', 'peer', 'resp', 'grpc'],
      ['id', 'http', 'peer', 'resp', 'grpc'],
      ['id', 'http', 'peer', 'grpc'],
    ]);
  });
});
