/** A closed cluster for dashboard tests, with tokens, a rules document and some counted requests. */
import { expect } from 'vitest';
import { eventually, type TestCluster } from '../cluster/harness.ts';

export class ClosedCluster {
  readonly cluster: TestCluster;
  admin = '';

  constructor(cluster: TestCluster) {
    this.cluster = cluster;
  }

  /** Creates a token. The first one must be an admin's and closes the cluster. */
  async token(role: 'admin' | 'read'): Promise<string> {
    const token = await eventually(`a token of role ${role}`, async () => {
      const { body } = await this.ask('POST', '/v1/tokens', { role, name: role });
      return (body as { readonly token?: string }).token;
    });
    if (role === 'admin') this.admin = token;
    return token;
  }

  async ask(
    method: string,
    path: string,
    body?: unknown,
    type = 'application/json',
  ): Promise<{ readonly status: number; readonly body: unknown }> {
    const response = await fetch(`http://127.0.0.1:${this.cluster.port(2)}${path}`, {
      method,
      headers: {
        'content-type': type,
        ...(this.admin !== '' && { authorization: `Bearer ${this.admin}` }),
      },
      ...(body !== undefined && {
        body: type === 'application/json' ? JSON.stringify(body) : (body as string),
      }),
    });
    return { status: response.status, body: await response.json() };
  }

  /** Applies rules as another admin, at another node. */
  async changeRules(document: string): Promise<void> {
    await eventually('the rules are in force', async () => {
      const { status, body } = await this.ask('PUT', '/v1/rules', document, 'application/yaml');
      if (status === 400) expect.fail(`rules: ${JSON.stringify(body)}`);
      return status === 200 ? true : undefined;
    });
  }

  async allow(descriptors: Readonly<Record<string, string>>, requestId?: string): Promise<number> {
    const { status } = await this.ask('POST', '/v1/allow', { descriptors, requestId });
    return status;
  }

  /** Sends requests. @returns the number of grants */
  async allowOften(times: number, descriptors: Readonly<Record<string, string>>): Promise<number> {
    let allowed = 0;
    for (let i = 0; i < times; i += 1) if ((await this.allow(descriptors)) === 200) allowed += 1;
    return allowed;
  }
}
