/** Tests `quorate allow` and `quorate users` at a running node. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { InProcessCluster } from '../cluster/in-process.ts';
import { eventually } from '../cluster/harness.ts';
import { decided, type Ended, ran } from './command.ts';

let cluster: InProcessCluster;
let node: string;

beforeAll(async () => {
  cluster = await InProcessCluster.create({
    rules: [{ id: 'default', limit: 2, windowMillis: 600_000, clock: 'cluster' }],
    partitions: 1,
    nodes: 1,
    timing: { requestDeadlineMillis: 10_000 },
  });
  await cluster.startAll();
  node = `127.0.0.1:${cluster.config.nodes[0]?.http.port}`;
  await eventually('the node decides', async () =>
    (await quorate('users', 'get', 'nobody')).code === 0 ? true : undefined,
  );
});
afterAll(() => cluster.stop());

/** Repeats a command until it is decided. Its request id makes a grant count once. */
async function quorate(...args: readonly string[]): Promise<Ended> {
  return decided(() => ran([...args, '--node', node], cluster.directory));
}

it('allow asks for a grant, and its exit code says the outcome', async () => {
  expect(await quorate('allow', 'ada', '--request-id', 'r1')).toMatchObject({
    code: 0,
    stdout: 'allowed: 1 of 2 left, by rule default\n',
  });
  const json = await quorate('allow', 'ada', '--request-id', 'r2', '--cost', '1', '--json');
  expect(JSON.parse(json.stdout)).toMatchObject({ allowed: true, remaining: 0 });
  const denied = await quorate('allow', 'ada');
  expect([denied.code, denied.stdout]).toEqual([
    1,
    expect.stringMatching(/^denied: 0 of 2 left, .*again in \d+ ms/),
  ]);
  expect(await quorate('allow', 'ada', '--rule', 'none')).toMatchObject({
    code: 64,
    said: expect.stringContaining('rule'),
  });
  expect((await quorate('allow', 'ada', '--cost', '0')).code).toBe(64);
  expect((await quorate('allow', '--descriptor', 'ip')).code).toBe(64);
});

it('users shows the status of a user, and refunds a grant', async () => {
  expect((await quorate('users', 'refund', 'ada', '--request-id', 'r1')).stdout).toBe(
    'given back: 1 by rule default\n',
  );
  expect((await quorate('users', 'refund', 'ada', '--request-id', 'r9')).code).toBe(64);
  const { stdout } = await quorate('users', 'get', 'ada');
  expect(stdout).toMatch(/^rule +remaining +limit .*\ndefault +1 +2 +600000 ms/);
  const json = await quorate('users', 'get', 'ada', '--rule', 'default', '--json');
  expect(JSON.parse(json.stdout)).toMatchObject({
    userId: 'ada',
    limits: [{ rule: 'default', remaining: 1 }],
  });
});

it('users blocks, unblocks and resets a key', async () => {
  expect((await quorate('users', 'block', 'ada')).stdout).toContain('ada is blocked');
  expect(await quorate('allow', 'ada')).toMatchObject({
    code: 1,
    stdout: 'denied: blocked by an operator\n',
  });
  expect((await quorate('users', 'block', 'ada', '--duration', '600000')).stdout).toMatch(
    /^ada is blocked: everything is denied for 600000 ms more\n$/,
  );
  expect((await quorate('allow', 'ada')).stdout).toMatch(
    /^denied: blocked by an operator; again in \d+ ms\n$/,
  );
  expect((await quorate('users', 'get', 'ada')).stdout).toMatch(
    /^blocked: everything is denied for \d+ ms more\n/,
  );
  expect((await quorate('users', 'block', 'ada', '--duration', '0')).code).toBe(64);
  expect((await quorate('users', 'unblock', 'ada', '--duration', '1')).code).toBe(64);
  expect(JSON.parse((await quorate('users', 'unblock', 'ada', '--json')).stdout)).toMatchObject({
    blocked: false,
  });
  expect((await quorate('users', 'reset', 'ada')).code).toBe(0);
  expect((await quorate('users', 'get', 'ada')).stdout).toContain('default  2');
});

it('users says how much a key has used', async () => {
  expect(await quorate('users', 'set', 'eve', '--rule', 'default', '--used', '1')).toMatchObject({
    code: 0,
    stdout: 'eve has used 1 by rule default\n',
  });
  expect((await quorate('users', 'get', 'eve')).stdout).toContain('default  1');
  const tooMuch = await quorate('users', 'set', 'eve', '--rule', 'default', '--used', '3');
  expect(tooMuch.code).not.toBe(0);
  expect((await quorate('users', 'set', 'eve', '--rule', 'none', '--used', '1')).code).not.toBe(0);
  expect((await quorate('users', 'set', 'eve', '--rule', 'default')).code).toBe(64);
  expect((await quorate('users', 'set', 'eve', '--rule', 'default', '--used', '0')).code).toBe(0);
  expect((await quorate('users', 'get', 'eve')).stdout).toContain('default  2');
});

it('a command names the address if no node listens', async () => {
  const { code, said } = await ran(['allow', 'ada', '--node', '127.0.0.1:1'], cluster.directory);
  expect([code, said]).toEqual([69, expect.stringContaining('no node listens')]);
});

it('users accepts a key instead of a user, and changes this key', async () => {
  expect((await quorate('users', 'block', 'customer=acme')).stdout).toContain('customer=acme is blocked');
  const json = await quorate('users', 'get', 'customer=acme', '--json');
  expect(JSON.parse(json.stdout)).toMatchObject({ key: 'customer=acme', blocked: true });
  const user = await quorate('users', 'get', 'user=customer=acme', '--json');
  expect(JSON.parse(user.stdout)).not.toHaveProperty('blocked');
  expect((await quorate('users', 'block', 'user=eve')).code).toBe(0);
  expect((await quorate('allow', 'eve')).stdout).toContain('denied: blocked');
  await quorate('allow', 'kim', '--request-id', 'k1');
  expect((await quorate('users', 'refund', 'user=kim', '--request-id', 'k1')).stdout).toBe(
    'given back: 1 by rule default\n',
  );
});
