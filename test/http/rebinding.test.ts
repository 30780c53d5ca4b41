/** DNS rebinding: an open node on loopback refuses web pages whose own host name points to it. */
import { afterEach, describe, expect, it } from 'vitest';
import { isRebound } from '../../src/http/local-callers.ts';
import { Listener } from './fixtures.ts';
import { RawClient } from './raw-client.ts';
import { until } from '../transport/wait.ts';

const LOOPBACK = { localAddress: '127.0.0.1' };

describe('a host name that resolves to loopback', () => {
  it.each([
    'evil.example',
    'evil.example:8101',
    'EVIL.example.',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    'a.b:',
  ])('is of another site: %s', (host) => {
    expect(isRebound(LOOPBACK, host, '127.0.0.1')).toBe(true);
    expect(isRebound({ localAddress: '::1' }, host, 'quorate.internal')).toBe(true);
    expect(isRebound({ localAddress: '::ffff:127.0.0.1' }, host, '')).toBe(true);
  });

  it.each([
    '127.0.0.1',
    '127.0.0.1:8101',
    '[::1]:8101',
    '::1',
    'localhost:8101',
    'LOCALHOST',
    'one.localhost',
    'node-1:8101',
    '',
    'quorate.internal:8101',
  ])('is of this machine: %s', (host) => {
    expect(isRebound(LOOPBACK, host, 'quorate.internal')).toBe(false);
  });

  it('does not matter to a listener on another address, which requires tokens', () => {
    expect(isRebound({ localAddress: '10.0.0.7' }, 'api.example', '10.0.0.7')).toBe(false);
    expect(isRebound({}, 'api.example', '10.0.0.7')).toBe(false);
  });
});

describe('an open node on loopback', () => {
  let listener = new Listener();
  afterEach(async () => listener.app.close());

  async function statusOf(host: string, path: string): Promise<string | undefined> {
    const client = new RawClient(await listener.listen());
    client.socket.write(`GET ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
    await until('it is answered', () => client.isClosed);
    return client.statuses()[0];
  }

  it.each(['/v1/cluster', '/metrics', '/v1/users/ada', '/v1/nothing'])(
    'does not answer a web page %s',
    async (path) => {
      listener = new Listener();
      expect(await statusOf('evil.example', path)).toBe('421');
    },
  );

  it('answers programs on its machine', async () => {
    listener = new Listener();
    expect(await statusOf('127.0.0.1:8101', '/v1/cluster')).toBe('200');
  });
});
