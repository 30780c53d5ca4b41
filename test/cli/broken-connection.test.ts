/** Tests that a command whose connection breaks says that its change may have been made. */
import { rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { temporaryDirectory } from '../cluster/harness.ts';
import { ran } from './command.ts';

/** A node that closes the connection on every request. */
let dying: Server;
let node: string;
let directory: string;

beforeEach(async () => {
  directory = await temporaryDirectory();
  dying = createServer((request) => request.resume().on('end', () => request.socket.destroy()));
  await new Promise<void>((resolve) => dying.listen(0, '127.0.0.1', resolve));
  node = `127.0.0.1:${(dying.address() as AddressInfo).port}`;
});
afterEach(async () => {
  dying.close();
  await rm(directory, { recursive: true });
});

it.each([
  [['allow', 'ada']],
  [['users', 'block', 'ada']],
  [['customers', 'delete', 'acme']],
  [['tokens', 'create', '--role', 'read']],
  [['tokens', 'revoke', 'abcdefgh']],
])('%j says that the change may have been made', async (args) => {
  expect(await ran([...args, '--node', node], directory)).toMatchObject({
    code: 75,
    said: expect.stringContaining('it may have been changed'),
  });
});

it('a command that changes nothing says only that the connection broke', async () => {
  expect(await ran(['users', 'get', 'ada', '--node', node], directory)).toMatchObject({
    code: 69,
    said: expect.stringContaining('the connection broke before an answer'),
  });
});

it('a listener without TLS is not reported as an untrusted one', async () => {
  const { code, said } = await ran(['users', 'get', 'ada', '--node', `https://${node}`], directory);
  expect([code, said]).toEqual([64, expect.stringContaining('give an http:// address')]);
});
