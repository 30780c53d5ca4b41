/**
 * Tests `quorate rules apply` and `diff --node`: they show the changes first, and each failure has a sentence and an
 * exit code.
 */
import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EXIT_TEMPORARY, explain } from '../../src/cli/explain-error.ts';
import { applyRules, compareWithCluster } from '../../src/cli/rules-apply.ts';
import { eventually, temporaryDirectory } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';
import { answered, type Ended, ended, ran } from './command.ts';

const RULES = 'rules:\n- {id: a, key: user, windows: {limit: 10, per: minute}}\n';
const STRICTER = RULES.replace('10', '5');
const TABLE_RULE = { id: 'default', limit: 3, windowMillis: 60_000, clock: 'cluster' } as const;

let directory: string;
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});

async function file(text: string | Buffer, name = 'rules.yaml'): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, text);
  return path;
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** A fake node that records requests and gives the test's answers; undefined breaks the connection. */
class PlayedNode {
  readonly sent: { readonly headers: IncomingHttpHeaders; readonly body: string }[] = [];
  readonly #server: Server;
  url = '';
  known: Answer = { status: 200, body: { version: 7, rules: [TABLE_RULE] } };
  applied: Answer | undefined = { status: 200, body: { version: 8, pending: [] } };

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const isChange = request.method === 'PUT';
        if (isChange) this.sent.push({ headers: request.headers, body: Buffer.concat(chunks).toString() });
        const answer = isChange ? this.applied : this.known;
        if (answer === undefined) request.socket.destroy();
        else response.writeHead(answer.status).end(JSON.stringify(answer.body));
      });
    });
  }

  static async start(): Promise<PlayedNode> {
    const node = new PlayedNode();
    await new Promise<void>((resolve) => node.#server.listen(0, '127.0.0.1', resolve));
    const address = node.#server.address();
    node.url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
    return node;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

describe('rules apply', () => {
  let node: PlayedNode;
  let lines: string[];
  const print = (line: string): unknown => lines.push(line);

  beforeEach(async () => {
    node = await PlayedNode.start();
    lines = [];
  });
  afterEach(async () => node.stop());

  /** Returns the message and the exit code of a failing command. */
  async function failure(
    options: { ifVersion?: number } = {},
  ): Promise<{ message: string; exitCode: number }> {
    const path = await file(RULES);
    const outcome = await applyRules(path, { node: node.url, print, ...options }).catch(
      (error: unknown) => error,
    );
    return explain(outcome);
  }

  it('sends the unchanged document, for the version that it was compared with', async () => {
    const outcome = await applyRules(await file(RULES), { node: node.url, print });
    expect(outcome).toBe('applied');
    expect(lines).toEqual([
      `${node.url} uses version 7 of the rules, which were not set with a document`,
      'default is removed: 3 per minute by user',
      'a is added: 10 per minute by user',
      'version 8 is in force: every partition uses it',
    ]);
    expect(node.sent).toEqual([{ headers: expect.anything(), body: RULES }]);
    expect(node.sent[0]?.headers).toMatchObject({ 'content-type': 'application/yaml', 'if-match': '"7"' });
  });

  it('prints JSON', async () => {
    await applyRules(await file(RULES), { node: node.url, print, json: true });
    expect(JSON.parse(lines.join('\n'))).toMatchObject({
      ok: true,
      from: 7,
      changes: [
        { kind: 'removed', id: 'default', words: 'default is removed: 3 per minute by user' },
        { kind: 'added', id: 'a' },
      ],
      version: 8,
      pending: [],
    });
  });

  it('names the partitions that will use it later', async () => {
    node.applied = { status: 202, body: { version: 8, pending: [3, 5] } };
    expect(await applyRules(await file(RULES), { node: node.url, print })).toBe('pending');
    expect(lines.at(-1)).toBe(
      'version 8 is accepted; 2 partitions (3, 5) will use it when they have a leader',
    );
  });

  it('reports all mistakes of a wrong document, and asks no node', async () => {
    const path = await file(RULES.replace('limit', 'limt'));
    await node.stop();
    expect(await applyRules(path, { node: node.url, print })).toBe('mistakes');
    expect(lines).toEqual([
      `${path}:2:31: a window needs a limit from 0 to 1000000`,
      `${path}:2:32: unknown field 'limt'; did you mean limit?`,
      `${path}: 2 mistakes; they may hide others, so check again when they are corrected`,
    ]);
  });

  it('refuses a document that is too long for a cluster, and names the bound', async () => {
    const path = await file(RULES + '#'.repeat(262_144));
    expect(await applyRules(path, { node: node.url, print })).toBe('mistakes');
    expect(lines[0]).toContain('a cluster takes documents of at most 262144 bytes, and this one has');
    expect(node.sent).toEqual([]);
  });

  it('says that rules of nested descriptors limit only gateways', async () => {
    const nested = '{domain: d, descriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: 1}}]}';
    await applyRules(await file(nested), { node: node.url, print });
    expect(lines).toContainEqual(expect.stringContaining('they limit no other requests'));
  });

  it('changes nothing if another version than --if-version is in force', async () => {
    expect(await failure({ ifVersion: 6 })).toEqual({
      message: `${node.url} uses version 7 of the rules, not 6; nothing was changed`,
      exitCode: 64,
    });
    expect(node.sent).toEqual([]);
    expect(await applyRules(await file(RULES), { node: node.url, print, ifVersion: 7 })).toBe('applied');
  });

  it.each<[Answer | undefined, string, number]>([
    [
      { status: 412, body: { reason: 'rulesChanged', message: 'others are in force' } },
      'others are in force',
      64,
    ],
    [{ status: 403, body: { error: { message: 'not from here' } } }, 'refuses: not from here', 64],
    [{ status: 400, body: { error: { message: 'too many rules' } } }, 'refuses: too many rules', 64],
    [
      { status: 503, body: { reason: 'notLeader', message: 'no leader' } },
      'no leader; nothing was changed',
      69,
    ],
    [{ status: 503, body: { reason: 'unknownOutcome', message: 'who knows' } }, 'may have been changed', 75],
    [undefined, 'may have been changed', 75],
  ])('reports the answer %j', async (answer, message, exitCode) => {
    node.applied = answer;
    const failed = await failure();
    expect(failed.message).toContain(message);
    expect(failed.exitCode).toBe(exitCode);
  });

  it.each<[Answer, number]>([
    [{ status: 503, body: { message: 'no rules are in force yet' } }, 69],
    [{ status: 200, body: { version: 7 } }, 64],
    [{ status: 200, body: { version: 7, rules: [TABLE_RULE], definitions: [5] } }, 64],
    [{ status: 404, body: { error: { message: 'no route' } } }, 64],
  ])('sends nothing to a node that reports %j as its rules', async (known, exitCode) => {
    node.known = known;
    expect((await failure()).exitCode).toBe(exitCode);
    expect(node.sent).toEqual([]);
  });

  it('names the address if no node listens there', async () => {
    await node.stop();
    const { message, exitCode } = await failure();
    expect(message).toBe(
      `no node listens at ${node.url} (ECONNREFUSED): give the address of a running node with --node, or the directory of its cluster with --data`,
    );
    expect(exitCode).toBe(69);
  });

  it('compares as diff, and sends nothing', async () => {
    expect(await compareWithCluster(await file(RULES), { node: node.url, print })).toBe(true);
    expect(lines.at(-1)).toBe('a is added: 10 per minute by user');
    expect(await compareWithCluster(await file('rules: 5'), { node: node.url, print })).toBe(false);
    expect(node.sent).toEqual([]);
  });
});

describe('with a cluster', () => {
  let cluster: InProcessCluster;
  let node: string;

  async function start(): Promise<void> {
    await cluster.startAll();
    node = `127.0.0.1:${cluster.config.nodes[0]?.http.port}`;
    await eventually('the node knows its rules', async () => {
      const { status } = await fetch(`http://${node}/readyz`);
      return status === 200 ? true : undefined;
    });
  }

  const rules = async (args: readonly string[]): Promise<Ended> =>
    answered(() => ran(['rules', ...args, '--node', node], directory));

  /** Repeats a request until it is decided. Its id makes it count once. */
  async function isAllowed(): Promise<boolean> {
    const body = JSON.stringify({ descriptors: { user: 'ada' }, cost: 6, requestId: randomUUID() });
    const headers = { 'content-type': 'application/json' };
    const status = await eventually('a node decides', async () => {
      const response = await fetch(`http://${node}/v1/allow`, { method: 'POST', headers, body });
      return response.status === 503 ? undefined : response.status;
    });
    return status === 200;
  }

  /** Returns undefined if the outcome of a change was unknown, or it was not made. */
  async function applyTwice(): Promise<true | undefined> {
    const first = await rules(['apply', 'rules.yaml']);
    if (first.code === EXIT_TEMPORARY) return undefined;
    expect(first.stdout).toContain('a is added: 10 per minute by user\nversion 2 is in force');
    expect(first.code).toBe(0);
    expect(await isAllowed()).toBe(true);
    expect((await rules(['diff', 'rules.yaml'])).stdout).toBe(
      `http://${node} uses version 2 of the rules\nnothing changes\n`,
    );
    const shown = await rules(['show']);
    expect(shown.stdout).toMatch(
      /^# version 2 of the rules, as http:\/\/127\.0\.0\.1:\d+ says\nrules:\n {2}- id: a\n/,
    );
    await file(shown.stdout, 'shown.yaml');
    expect((await rules(['diff', 'shown.yaml'])).stdout).toContain('nothing changes');
    const asked = ['rules', 'apply', '-', '--if-version', '2', '--node', node];
    const stricter = await answered(() => ended('quorate', asked, directory, STRICTER));
    if (stricter.code === EXIT_TEMPORARY) return undefined;
    expect(stricter.stdout).toBe(
      `http://${node} uses version 2 of the rules\na becomes stricter\n  limit per minute: 10 per minute -> 5 per minute (tighter)\n` +
        'version 3 is in force: every partition uses it\n',
    );
    expect(await isAllowed()).toBe(false);
    const late = await rules(['apply', 'rules.yaml', '--if-version', '2']);
    expect(late).toMatchObject({ code: 64, stdout: '' });
    expect(late.said).toContain('uses version 3 of the rules, not 2; nothing was changed');
    return true;
  }

  it('a document is applied, compared and replaced by the next', async () => {
    await file(RULES);
    // A busy machine may take long for a decision.
    const timing = { requestDeadlineMillis: 10_000 };
    const isTaken = await eventually('a new cluster takes both in time', async () => {
      cluster = await InProcessCluster.create({ rules: [TABLE_RULE], partitions: 4, nodes: 1, timing });
      try {
        await start();
        return await applyTwice();
      } finally {
        await cluster.stop();
      }
    });
    expect(isTaken).toBe(true);
  });
});

describe('a wrong command line', () => {
  it.each([
    [['diff'], "missing required argument 'file'"],
    [
      ['diff', 'a.yaml', 'b.yaml', '--node', 'localhost:1'],
      '--node names a cluster: give one document with it, not two',
    ],
    [['apply', 'a.yaml', '--node', 'here'], 'expected host:port'],
    [['apply', 'a.yaml', '--if-version', 'x'], 'expected a whole number'],
    [['apply', 'absent.yaml'], 'absent.yaml is not there'],
    [['apply'], "missing required argument 'file'"],
  ])('%j is refused in a sentence', async (args, message) => {
    const { code, said } = await ran(['rules', ...args], directory);
    expect(said).toContain(message);
    expect(code).toBe(64);
  });

  it('--help lists the commands', async () => {
    const { code, stdout } = await ran(['rules', 'apply', '--help'], directory);
    for (const word of ['<file>', '--node <host:port>', '127.0.0.1:8101', '--if-version <n>', '--json'])
      expect(stdout).toContain(word);
    expect(code).toBe(0);
  });
});
