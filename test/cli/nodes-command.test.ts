/** Tests that `quorate nodes` reports progress, never waits for ever, and ends when the work is done. */
import { createServer, type Server } from 'node:http';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { ClusterReport, ReportedSelf } from '../../src/api/cluster-report.ts';
import { explain } from '../../src/cli/explain-error.ts';
import { changeNodes } from '../../src/cli/nodes-command.ts';
import { WAIT_MILLIS_MAX } from '../cluster/harness.ts';

/** The next answer of a fake node; undefined if it never answers. */
type Answer = () => { readonly status: number; readonly body: object } | undefined;

const ACCEPTED: Answer = () => ({ status: 200, body: { version: 2 } });

class Node {
  readonly #server: Server;
  url = '';
  answers: { change: Answer; status: Answer };

  private constructor(answers: Node['answers']) {
    this.answers = answers;
    this.#server = createServer((request, response) => {
      request.resume();
      const answer = request.method === 'POST' ? this.answers.change() : this.answers.status();
      if (answer !== undefined) response.writeHead(answer.status).end(JSON.stringify(answer.body));
    });
  }

  static async start(answers: Partial<Node['answers']> = {}): Promise<Node> {
    const node = new Node({ change: ACCEPTED, status: statusOf(2), ...answers });
    await new Promise<void>((resolve) => node.#server.listen(0, '127.0.0.1', resolve));
    const address = node.#server.address();
    node.url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
    nodes.push(node);
    return node;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** Time to repeat a command on a busy machine. */
const PATIENCE = { timeout: WAIT_MILLIS_MAX };
const NODE = { pid: null, clock: null, speaks: null, release: null };
const PARTITION = { id: 0, leader: 1, term: 1, commit: 1, replicas: [] };

function statusOf(
  settledVersion: number,
  self: Omit<ReportedSelf, 'refusedBy'> = { id: 1, membership: 'member' },
  others: readonly Node[] = [],
  up = true,
): Answer {
  return () => ({
    status: 200,
    body: {
      self: { refusedBy: [], ...self },
      nodes: others.map(({ url }, i) => ({ ...NODE, id: i + 2, http: url.slice('http://'.length), up })),
      version: 2,
      settledVersion,
      rules: null,
      partitions: [
        { ...PARTITION, placed: true },
        { ...PARTITION, placed: settledVersion >= 2 },
      ],
    } satisfies ClusterReport,
  });
}

const nodes: Node[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const node of nodes.splice(0)) await node.stop();
});

async function change(
  node: string,
  {
    timeoutMillis = WAIT_MILLIS_MAX,
    saying = () => {},
  }: { timeoutMillis?: number; saying?: (line: string) => void } = {},
): Promise<string[]> {
  const lines: string[] = [];
  const print = (line: string): void => {
    lines.push(line);
    saying(line);
  };
  await changeNodes({ node, change: { remove: 1 }, timeoutMillis, print }).catch((error: unknown) =>
    lines.push(String(error)),
  );
  return lines;
}

/** Drops the lines that appear only if an answer takes long, as on a busy machine. */
function withoutWaiting(lines: readonly string[]): string[] {
  return lines.filter((line) => !/^(still: |waiting for an answer from |no answer from )/.test(line));
}

/** Calls `act` once the command has reported the progress of the partitions. */
function whenMoving(act: () => void): { saying: (line: string) => void } {
  return {
    saying: (line) => {
      if (line.startsWith('1 of 2 partitions are in place')) act();
    },
  };
}

describe('a change of the nodes', () => {
  it('fails at once if no node listens at --node, and says what to do', async () => {
    const node = await Node.start();
    await node.stop();
    await expect
      .poll(async () => change(node.url, { timeoutMillis: 2_000 }), PATIENCE)
      .toEqual([
        `ClusterCommandError: no node listens at ${node.url} (ECONNREFUSED): give the address of a running node of the cluster, on this machine, with --node`,
      ]);
  });

  it('says what it waits for after a few seconds, and gives up in time', async () => {
    const node = await Node.start({ change: () => undefined });
    const lines = await change(node.url, { timeoutMillis: 6_500 });
    expect(lines[0]).toBe(`waiting for an answer from ${node.url}`);
    expect(lines.at(-1)).toMatch(/not accepted in time: no answer for [1-9]\d* m?s/);
  });

  it('ends with 75 if it is not done in time', async () => {
    const { url } = await Node.start({ status: statusOf(1) });
    const init = { node: url, change: { remove: 1 }, timeoutMillis: 100, print: () => {} };
    const error: unknown = await changeNodes(init).catch((cause: unknown) => cause);
    expect(explain(error).exitCode).toBe(75);
  });

  it('repeats a request after a temporary refusal, and not after a permanent one', async () => {
    const answers = [503, 503, 200].map((status) => ({ status, body: { version: 2, message: 'no leader' } }));
    const node = await Node.start({ change: () => answers.shift() });
    const lines = withoutWaiting(await change(node.url));
    expect(lines[0]).toMatch(
      /^not accepted yet \(no leader\); asking again until \d{4}-\d\d-\d\dT[\d:]{8}Z$/,
    );
    expect(lines.at(-1)).toBe('done: all partitions have moved');
    node.answers.change = () => ({ status: 409, body: { message: 'take a new one' } });
    expect(withoutWaiting(await change(node.url))).toEqual(['ClusterCommandError: take a new one']);
  });

  it('is done when the removed node reports its removal, even if it does not know that all partitions have moved', async () => {
    const node = await Node.start({ status: statusOf(1) });
    const moving = whenMoving(() => {
      node.answers.status = statusOf(1, { id: 1, membership: 'removed' });
    });
    expect(withoutWaiting(await change(node.url, moving)).slice(1)).toEqual([
      '1 of 2 partitions are in place',
      'done: all partitions have moved',
    ]);
  });

  it('says which node it waits for', async () => {
    // The command would ask this node if the other one is too busy.
    const newcomer = await Node.start({ status: () => undefined });
    const node = await Node.start({ status: statusOf(1, undefined, [newcomer], false) });
    const moving = whenMoving(() => {
      node.answers.status = statusOf(2);
    });
    const address = newcomer.url.slice('http://'.length);
    expect(await change(node.url, moving)).toContain(
      `1 of 2 partitions are in place; waiting for node 2 at ${address}, which is not there`,
    );
  });

  it('through a removed node fails at once, or is done if it removes this node', async () => {
    const reason = 'node 1 was removed from the cluster';
    const refusal = { status: 409, body: { reason: 'notMember', message: 'ask another one' } };
    const node = await Node.start({ change: () => refusal });
    node.answers.status = statusOf(1, { id: 1, membership: 'removed', reason });
    await expect.poll(async () => change(node.url), PATIENCE).toEqual(['done: all partitions have moved']);
    node.answers.status = statusOf(1, { id: 3, membership: 'removed', reason });
    await expect
      .poll(async () => change(node.url), PATIENCE)
      .toEqual([
        `ClusterCommandError: ${node.url}: ${reason}; give the address of a running node of the cluster, on this machine, with --node`,
      ]);
  });

  it('continues at the other nodes when the asked node is gone', async () => {
    const other = await Node.start();
    const asked = vi.fn<Answer>(statusOf(2)).mockImplementationOnce(statusOf(1));
    other.answers.status = asked;
    const node = await Node.start({ status: statusOf(1, undefined, [other]) });
    const moving = whenMoving(() => void node.stop());
    expect((await change(node.url, moving)).at(-1)).toBe('done: all partitions have moved');
    expect(asked.mock.calls.length).toBeGreaterThan(1);
  });
});
