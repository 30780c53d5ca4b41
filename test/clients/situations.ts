/**
 * The situations in which each program of `docs/languages/` runs, on real clusters, and the output that it must print
 * in each.
 */
import { execFile } from 'node:child_process';
import { freePorts } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';
import type { Protocol } from './examples.ts';
import { RUN_MILLIS_MAX } from './run.ts';

/** docs/languages.md starts its cluster with this limit, and shows the output for it. */
const RULES = [{ id: 'default', limit: 3, windowMillis: 600_000, clock: 'cluster' }] as const;

const GRANTS = ['allowed, 2 left', 'allowed, 1 left', 'allowed, 0 left'];
const UNDECIDED = 'unavailable: denied';
/** Attempts, because an election on a busy machine is not the program's fault. */
const ATTEMPTS_MAX = 3;

export interface Situation {
  readonly name: string;
  readonly nodes: Readonly<Record<Protocol, string>>;
  readonly token?: string;
  readonly wants: 'decisions' | 'unavailable' | 'failure';
}

export interface Ran {
  readonly lines: readonly string[];
  readonly hasFailed: boolean;
}

/** Returns `ok`, or what happened instead. */
export async function wordOf({ wants }: Situation, run: (attempt: number) => Promise<Ran>): Promise<string> {
  let ran = await run(1);
  for (let i = 2; i <= ATTEMPTS_MAX && wants === 'decisions' && ran.lines.includes(UNDECIDED); i += 1)
    ran = await run(i);
  return isAsWanted(wants, ran) ? 'ok' : `${JSON.stringify(ran)}, and ${wants} were due`;
}

function isAsWanted(wants: Situation['wants'], { lines, hasFailed }: Ran): boolean {
  if (wants === 'failure')
    return hasFailed && !lines.some((line) => /^(?:allowed|denied|unavailable)/.test(line));
  if (hasFailed || lines.length !== GRANTS.length + 1) return false;
  if (wants === 'unavailable') return lines.every((line) => line === UNDECIDED);
  const seconds = Number(/^denied, retry after (\d+) s$/.exec(lines.at(-1) ?? '')?.[1]);
  return GRANTS.every((line, i) => lines[i] === line) && seconds > 500 && seconds <= 601;
}

/** Runs a command for one user in a situation. */
export async function ranIn(
  { nodes, token }: Situation,
  protocol: Protocol,
  [file, ...values]: readonly [string, ...string[]],
): Promise<Ran> {
  const { QUORATE_TOKEN: _, ...others } = process.env;
  const env = {
    ...others,
    QUORATE_NODES: nodes[protocol],
    ...(token !== undefined && { QUORATE_TOKEN: token }),
  };
  return new Promise((resolve) => {
    execFile(file, values, { timeout: RUN_MILLIS_MAX, env }, (error, stdout) => {
      const lines = stdout.split('\n').filter((line) => line !== '');
      resolve({ lines, hasFailed: error !== null });
    });
  });
}

/** Three clusters: a healthy one, one without a majority, and a closed one. */
export class Situations {
  readonly all: readonly Situation[];
  readonly #clusters: readonly InProcessCluster[];

  private constructor(all: readonly Situation[], clusters: readonly InProcessCluster[]) {
    this.all = all;
    this.#clusters = clusters;
  }

  static async start(): Promise<Situations> {
    const clusters: InProcessCluster[] = [];
    for (const nodes of [3, 3, 1])
      clusters.push(await InProcessCluster.create({ rules: RULES, nodes, partitions: 2, resp: true }));
    const [whole, lone, closed] = clusters as [InProcessCluster, InProcessCluster, InProcessCluster];
    for (const cluster of clusters) await cluster.startAll();
    for (const id of [2, 3]) await lone.stopNode(id);
    const token = await closedWith(closed);
    const [dead = 0] = await freePorts(1);
    const downNodes = { http: `http://127.0.0.1:${dead}`, redis: `127.0.0.1:${dead}` };
    const nodes = nodesOf(whole);
    const withDownNode = {
      http: `${downNodes.http},${nodes.http}`,
      redis: `${downNodes.redis},${nodes.redis}`,
    };
    const all: Situation[] = [
      { name: 'limit', nodes, wants: 'decisions' },
      { name: 'a node is down', nodes: withDownNode, wants: 'decisions' },
      { name: 'all nodes are down', nodes: downNodes, wants: 'unavailable' },
      { name: 'no majority', nodes: nodesOf(lone, 1), wants: 'unavailable' },
      { name: 'token', nodes: nodesOf(closed), token, wants: 'decisions' },
      { name: 'no token', nodes: nodesOf(closed), wants: 'failure' },
    ];
    return new Situations(all, clusters);
  }

  async stop(): Promise<void> {
    for (const cluster of this.#clusters) await cluster.stop();
  }
}

function nodesOf(
  { config }: InProcessCluster,
  count = config.nodes.length,
): Readonly<Record<Protocol, string>> {
  const nodes = config.nodes.slice(0, count);
  return {
    http: nodes.map(({ http }) => `http://127.0.0.1:${http.port}`).join(','),
    redis: nodes.map(({ resp }) => `127.0.0.1:${resp?.port}`).join(','),
  };
}

/** Closes the cluster and returns a token of role decide. */
async function closedWith({ config }: InProcessCluster): Promise<string> {
  const url = `http://127.0.0.1:${config.nodes[0]?.http.port}/v1/tokens`;
  const made = async (role: string): Promise<string> => {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(url, {
      method: 'POST',
      headers,
      body: JSON.stringify({ role, name: role }),
    });
    const { token } = (await response.json()) as { readonly token?: string };
    if (token === undefined) throw new Error(`no token of role ${role}: status ${response.status}`);
    return token;
  };
  const token = await made('decide');
  await made('admin');
  return token;
}
