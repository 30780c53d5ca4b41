/**
 * The cluster under attack: three processes with TLS everywhere and tokens. It also records the state that no attack
 * may change.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { listenerUrl, nodeFetch } from '../../src/cli/node-fetch.ts';
import { eventually, TestCluster } from '../cluster/harness.ts';
import type { Listener, Scale } from './scale.ts';
import type { Address, Credentials } from './sockets.ts';

const RULE = { id: 'default', limit: 1_000_000, windowMillis: 60_000, clock: 'cluster' } as const;
const ANSWER_MILLIS_MAX = 30_000;
/** A busy machine may hold some elections. Forged votes would raise terms by far more. */
const TERMS_PER_ATTACK_MAX = 50;

export interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

interface Tokens {
  readonly admin: string;
  readonly read: string;
  readonly decide: string;
  /** A revoked token of role admin. */
  readonly revoked: string;
}

/** The state that no attack may change. */
interface Facts {
  readonly nodes: string;
  readonly rules: string;
  readonly tokens: string;
  readonly terms: readonly number[];
}

export class Target {
  readonly cluster: TestCluster;
  readonly tokens: Tokens;
  readonly ca: string;
  readonly scale: Scale;

  private constructor(cluster: TestCluster, init: Pick<Target, 'tokens' | 'ca' | 'scale'>) {
    this.cluster = cluster;
    this.tokens = init.tokens;
    this.ca = init.ca;
    this.scale = init.scale;
  }

  static async start(scale: Scale): Promise<Target> {
    const cluster = await TestCluster.start({
      rules: [RULE],
      partitions: 4,
      resp: true,
      grpc: true,
      tls: true,
    });
    const made: Record<string, { id: string; token: string }> = {};
    for (const [name, role] of [
      ['admin', 'admin'],
      ['revoked', 'admin'],
      ['read', 'read'],
      ['decide', 'decide'],
    ] as const)
      made[name] = await create(cluster, role, made['admin']?.token);
    const admin = made['admin']?.token ?? '';
    await ask(cluster, 2, 'DELETE', `/v1/tokens/${made['revoked']?.id}`, { token: admin });
    return new Target(cluster, {
      tokens: {
        admin,
        read: made['read']?.token ?? '',
        decide: made['decide']?.token ?? '',
        revoked: made['revoked']?.token ?? '',
      },
      ca: await readFile(join(cluster.directory, 'certs', 'ca.crt'), 'utf8'),
      scale,
    });
  }

  address(id: number, listener: Listener): Address {
    const address = this.cluster.config.nodes.find((node) => node.id === id)?.[listener];
    if (address === undefined) throw new Error(`there is no ${listener} of node ${id}`);
    return address;
  }

  /** Certificate and key of node `id`, as a thief may have them. */
  async certificateOf(id: number): Promise<Credentials> {
    const file = async (end: string): Promise<Buffer> =>
      readFile(join(this.cluster.directory, 'certs', `node-${id}.${end}`));
    return { cert: await file('crt'), key: await file('key') };
  }

  async ask(id: number, method: string, path: string, asked: Asked = {}): Promise<Answer> {
    return ask(this.cluster, id, method, path, asked);
  }

  async facts(): Promise<Facts> {
    return eventually('the cluster reports its state', async () => {
      const token = this.tokens.admin;
      const [report, rules, tokens] = await Promise.all(
        ['/v1/cluster', '/v1/rules', '/v1/tokens'].map(async (path) => this.ask(1, 'GET', path, { token })),
      );
      if (report?.status !== 200 || rules?.status !== 200 || tokens?.status !== 200) return undefined;
      const { nodes, partitions } = report.body as {
        readonly nodes: readonly { readonly id: number; readonly up: boolean; readonly pid: number }[];
        readonly partitions: readonly { readonly term: number }[];
      };
      if (nodes.length < this.cluster.ids.length || nodes.some(({ up }) => !up)) return undefined;
      return {
        nodes: JSON.stringify(nodes.map(({ id, pid }) => ({ id, pid }))),
        rules: JSON.stringify(rules.body),
        tokens: JSON.stringify(tokens.body),
        terms: partitions.map(({ term }) => term),
      };
    });
  }

  /** Differences in words; empty if nothing changed. A crashed node has another pid or is down. */
  async changedSince(before: Facts): Promise<readonly string[]> {
    const now = await this.facts();
    const changed = (['nodes', 'rules', 'tokens'] as const)
      .filter((fact) => now[fact] !== before[fact])
      .map((fact) => `${fact}: ${before[fact]} became ${now[fact]}`);
    const rise = Math.max(...now.terms.map((term, i) => term - (before.terms[i] ?? 0)));
    return rise > TERMS_PER_ATTACK_MAX ? [...changed, `terms rose by ${rise}`] : changed;
  }

  async stop(): Promise<void> {
    await this.cluster.stop();
  }
}

interface Asked {
  readonly token?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

async function ask(
  cluster: TestCluster,
  id: number,
  method: string,
  path: string,
  { token, body, headers }: Asked,
): Promise<Answer> {
  const http = cluster.config.nodes.find((node) => node.id === id)?.http ?? { host: '', port: 0 };
  const response = await nodeFetch(new URL(path, listenerUrl({ http }, cluster.config.tls)), {
    signal: AbortSignal.timeout(ANSWER_MILLIS_MAX),
    method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text.startsWith('{') ? (JSON.parse(text) as Answer['body']) : {} };
}

async function create(
  cluster: TestCluster,
  role: string,
  token: string | undefined,
): Promise<{ id: string; token: string }> {
  return eventually(`a token of role ${role}`, async () => {
    const answer = await ask(cluster, 1, 'POST', '/v1/tokens', {
      ...(token !== undefined && { token }),
      body: { role, name: role },
    });
    if (answer.status !== 201) return undefined;
    return { id: String(answer.body['id']), token: String(answer.body['token']) };
  });
}
