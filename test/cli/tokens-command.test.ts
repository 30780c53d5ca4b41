/**
 * Tests `quorate tokens`, and that all commands read a token from the environment or a file, never from an argument.
 */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { EXIT_TEMPORARY } from '../../src/cli/explain-error.ts';
import { TOKEN_VARIABLE } from '../../src/cli/node-fetch.ts';
import { partsOfToken } from '../../src/api/token.ts';
import { eventually, temporaryDirectory } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';
import { answered, decided, type Ended, ended, ran } from './command.ts';

const TOKEN = /^qt_[a-z0-9]{8}_[\w-]{43}$/m;
/** Long election timeouts: an election during the creation of a token would lose its secret. */
const PATIENT = { heartbeatMillis: 100, electionMillis: 2_000, requestDeadlineMillis: 10_000 };
let cluster: InProcessCluster;
let directory: string;

beforeAll(async () => {
  directory = await temporaryDirectory();
  cluster = await InProcessCluster.create({
    partitions: 1,
    rules: [{ id: 'default', limit: 100, windowMillis: 60_000, clock: 'cluster' }],
    timing: PATIENT,
  });
  await cluster.startAll();
  await eventually('group 0 has a leader', () => cluster.node(1).core.meta.leader || undefined);
});
afterAll(async () => {
  await cluster.stop();
  await rm(directory, { recursive: true });
});
afterEach(() => {
  delete process.env[TOKEN_VARIABLE];
});

function toNode(args: readonly string[]): string[] {
  return [...args, '--node', `127.0.0.1:${cluster.config.nodes[0]?.http.port}`];
}

async function quorate(...args: string[]): Promise<Ended> {
  return answered(() => ran(toNode(args), directory));
}

/** Repeats a command that is safe to repeat. */
async function repeated(...args: string[]): Promise<Ended> {
  return decided(() => quorate(...args));
}

/** Asks the node directly, which needs no token for it. */
async function revokeAll(): Promise<void> {
  const { core } = cluster.node(1);
  for (const { id: revoke } of core.tokens.tokens()) {
    const change = { revoke, canOpen: true };
    await new Promise((resolve) => core.change({ type: 'tokens', change }, resolve));
  }
}

/**
 * Creates the first token. If the outcome is unknown, the lost token would close the cluster for good, so it is revoked
 * first.
 */
async function createFirst(): Promise<Ended> {
  let isInDoubt = false;
  return eventually('the first token exists and is certainly the only one', async () => {
    if (isInDoubt) await revokeAll();
    const made = await quorate('tokens', 'create', '--role', 'admin', '--name', 'ops');
    isInDoubt ||= made.code === EXIT_TEMPORARY;
    const isOnly = made.code === 0 && cluster.node(1).core.tokens.tokens().length === 1;
    return isInDoubt && !isOnly ? undefined : made;
  });
}

describe('quorate tokens', () => {
  let admin = '';

  it('creates the first one while the cluster is open, and prints it once', async () => {
    expect((await quorate('tokens', 'list')).stdout).toContain('there are no tokens');
    const { code, stdout } = await createFirst();
    expect(code).toBe(0);
    [admin = ''] = TOKEN.exec(stdout) ?? [];
    expect(partsOfToken(admin)).toBeDefined();
  });

  it('is then refused without a token, and says how to give one', async () => {
    for (const command of [
      ['tokens', 'list'],
      ['rules', 'diff', 'rules.yaml'],
    ]) {
      await writeFile(join(directory, 'rules.yaml'), 'rules:\n- {id: a, windows: {limit: 1, per: minute}}\n');
      const { code, said } = await quorate(...command);
      expect([code, said]).toEqual([64, expect.stringContaining('put it into QUORATE_TOKEN')]);
    }
  });

  it('shows the token of the environment, or of a file', async () => {
    process.env[TOKEN_VARIABLE] = admin;
    const listed = await quorate('tokens', 'list');
    expect(listed.stdout).toContain(`${partsOfToken(admin)?.id}  admin   ops`);
    expect(listed.stdout).not.toContain(partsOfToken(admin)?.secret);
    process.env[TOKEN_VARIABLE] = `qt_aaaaaaaa_${'A'.repeat(43)}`;
    expect((await quorate('tokens', 'list')).code).toBe(64);
    const file = join(directory, 'token');
    await writeFile(file, `${admin}\n`);
    const shown = toNode(['tokens', 'list', '--token-file', file]);
    expect((await ended('quorate', shown, directory)).code).toBe(0);
  });

  it('never prints a text that is no token', async () => {
    process.env[TOKEN_VARIABLE] = 'hunter2';
    const { code, said } = await quorate('tokens', 'list');
    expect([code, said]).toEqual([64, expect.stringMatching(/^quorate: QUORATE_TOKEN must hold a token/)]);
    expect(said).not.toContain('hunter2');
    const missing = await quorate('tokens', 'list', '--token-file', join(directory, 'none'));
    expect([missing.code, missing.said]).toEqual([64, expect.stringContaining('ENOENT')]);
  });

  it('revokes one, and the last of role admin with --open only', async () => {
    process.env[TOKEN_VARIABLE] = admin;
    const id = await eventually('a token is created and certainly revoked', async () => {
      const made = await quorate('tokens', 'create', '--role', 'read', '--name', 'grafana', '--json');
      if (made.code === EXIT_TEMPORARY) return undefined;
      const { id: madeId } = JSON.parse(made.stdout) as { id: string };
      const revoked = await quorate('tokens', 'revoke', madeId);
      if (revoked.code === EXIT_TEMPORARY) return undefined;
      expect(revoked).toMatchObject({ code: 0, stdout: `token ${madeId} is revoked\n` });
      return madeId;
    });
    expect((await repeated('tokens', 'revoke', id)).said).toContain('there is no token of this id');
    const own = partsOfToken(admin)?.id ?? '';
    expect(await repeated('tokens', 'revoke', own)).toMatchObject({
      code: 64,
      said: expect.stringContaining('open=true') as string,
    });
    const opened = await quorate('tokens', 'revoke', own, '--open');
    const isInDoubt = opened.code === EXIT_TEMPORARY;
    if (isInDoubt)
      // The revocation may not have reached all nodes yet.
      await eventually('the token is revoked', async () => {
        const { code, said } = await repeated('tokens', 'revoke', own, '--open');
        const isOpen = cluster.node(1).core.tokens.mode() === 'open';
        return isOpen && (code === 0 || said.includes('there is no token of this id')) ? true : undefined;
      });
    expect(opened.code).toBe(isInDoubt ? EXIT_TEMPORARY : 0);
    delete process.env[TOKEN_VARIABLE];
    expect((await quorate('tokens', 'list')).code).toBe(0);
  });
});

describe('quorate init --admin-token', () => {
  it('closes a cluster from its first day: the file holds no secret', async () => {
    const data = join(directory, 'data');
    const { stdout } = await ran(['init', '--admin-token', '--data', data], directory);
    const [token = ''] = TOKEN.exec(stdout) ?? [];
    const { id, secret = '?' } = partsOfToken(token) ?? {};
    const text = await readFile(join(data, 'cluster.json'), 'utf8');
    expect((JSON.parse(text) as { tokens: unknown }).tokens).toMatchObject([{ id, role: 'admin' }]);
    expect(text).not.toContain(secret);
  });
});
