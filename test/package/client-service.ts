/**
 * Makes a service outside the checkout that installs `@quorate/client` from its tarball and has its own test. Its
 * programs are texts, because `@quorate/client` resolves only there.
 */
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { assembleClientPackage } from '../../cluster/client-package.ts';
import { ROOT } from './packed.ts';

const run = promisify(execFile);

/**
 * Compiles without the DOM and without the types of Node, and checks all declarations: the types of the client must need
 * none of them.
 */
const BARE = `import { InvalidOptionError, QuorateClient, type ClientOptions } from '@quorate/client';
import { byIp, rateLimit as express } from '@quorate/client/express';
import { rateLimit as fastify } from '@quorate/client/fastify';
import { rateLimit as fetch } from '@quorate/client/fetch';
import { rateLimit as hono } from '@quorate/client/hono';
const options: ClientOptions = { nodes: ['http://127.0.0.1:1'] };
const client = new QuorateClient(options);
const identify = byIp();
export const all = [
  express({ client, identify }),
  fastify({ client, identify }),
  hono({ client, identify }),
  fetch({ client, identify }, () => undefined),
];
export const fieldOf = (error: InvalidOptionError): string => error.field;
// @ts-expect-error a client has no default nodes
export const nowhere = (): QuorateClient => new QuorateClient({});
`;

/** One route in each framework, as its users write it. */
const SERVICE = `import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import Fastify from 'fastify';
import { Hono } from 'hono';
import { QuorateClient } from '@quorate/client';
import { byApiKey, rateLimit as expressLimit } from '@quorate/client/express';
import { rateLimit as fastifyLimit } from '@quorate/client/fastify';
import { rateLimit as fetchLimit } from '@quorate/client/fetch';
import { rateLimit as honoLimit } from '@quorate/client/hono';

const nodes = (process.env['QUORATE_NODES'] ?? '').split(',');
export const client = new QuorateClient({ nodes, deadlineMillis: 30_000, attemptMillis: 5_000 });
const limited = { client, identify: byApiKey(), rule: '2/3600000ms' };

const fastify = Fastify();
fastify.get('/', { onRequest: fastifyLimit(limited) }, () => 'hello');
const fastifyUrl = await fastify.listen({ port: 0, host: '127.0.0.1' });

const expressApp = express();
expressApp.get('/', expressLimit(limited), (_, response) => void response.send('hello'));
const expressServer = createServer(expressApp).listen(0, '127.0.0.1');
await once(expressServer, 'listening');
const expressUrl = \`http://127.0.0.1:\${(expressServer.address() as AddressInfo).port}/\`;

const hono = new Hono();
hono.use(honoLimit(limited));
hono.get('/', (context) => context.text('hello'));

const handler = fetchLimit(limited, () => new Response('hello'));

type Ask = (headers: Record<string, string>) => Promise<Response>;
export const services: Readonly<Record<string, Ask>> = {
  fastify: async (headers) => fetch(fastifyUrl, { headers }),
  express: async (headers) => fetch(expressUrl, { headers }),
  hono: async (headers) => hono.request('/', { headers }),
  fetch: async (headers) => handler(new Request('http://service/', { headers })),
};

export async function stop(): Promise<void> {
  client.close();
  expressServer.closeAllConnections();
  expressServer.close();
  await fastify.close();
}
`;

const SERVICE_TEST = `import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { after, test } from 'node:test';
import * as imported from '@quorate/client';
import { services, stop } from './service.js';

after(stop);

for (const [name, ask] of Object.entries(services)) {
  test(\`\${name} lets two through, and denies the third\`, async () => {
    const headers = { 'x-api-key': \`key-of-\${name}\` };
    const answers = [await ask(headers), await ask(headers), await ask(headers)];
    assert.deepEqual(answers.map(({ status }) => status), [200, 200, 429]);
    assert.deepEqual(answers.map(({ headers }) => headers.get('x-ratelimit-remaining')), ['1', '0', '0']);
    assert.equal(await answers[0]?.text(), 'hello');
    assert.ok(Number(answers[2]?.headers.get('retry-after')) > 0);
  });
}

test('require finds what import finds', () => {
  const required = createRequire(import.meta.url)('@quorate/client') as typeof imported;
  assert.equal(required.QuorateClient, imported.QuorateClient);
});
`;

/** Last line of the test runner if all tests of the service pass. */
const TESTS = 5;

export const RESOLUTIONS = {
  nodenext: { module: 'nodenext', moduleResolution: 'nodenext' },
  bundler: { module: 'esnext', moduleResolution: 'bundler' },
};
const STRICT = { strict: true, target: 'es2023', lib: ['es2023'] };

/** Packs the client into `folder` and returns the tarball. */
export async function packClient(folder: string): Promise<string> {
  const assembled = join(folder, 'assembled');
  await mkdir(assembled, { recursive: true });
  assembleClientPackage(assembled);
  const { stdout } = await run('npm', ['pack', '--silent', assembled], { cwd: folder });
  return join(folder, stdout.trim());
}

/**
 * Installs a tarball into an empty service, without a registry and with its install scripts, and returns the installed
 * packages, as npm lists it.
 */
export async function installClient(service: string, tarball: string): Promise<Listed> {
  await mkdir(service, { recursive: true });
  await writeFile(join(service, 'package.json'), '{"name":"service","private":true,"type":"module"}');
  const cache = join(service, '..', 'npm-cache');
  await run('npm', ['install', '--offline', '--no-audit', '--cache', cache, tarball], { cwd: service });
  const { stdout } = await run('npm', ['ls', '--all', '--json'], { cwd: service });
  return JSON.parse(stdout) as Listed;
}

export interface Listed {
  readonly dependencies: Readonly<
    Record<string, { readonly version: string; readonly dependencies?: object }>
  >;
}

/** The manifest as it is installed. */
export async function installedManifest(service: string): Promise<Readonly<Record<string, unknown>>> {
  const path = join(service, 'node_modules/@quorate/client/package.json');
  return JSON.parse(await readFile(path, 'utf8')) as Readonly<Record<string, unknown>>;
}

/** Compiles the service with one module resolution. Returns the errors; empty if it compiles. */
export async function compileService(service: string, kind: keyof typeof RESOLUTIONS): Promise<string> {
  const programs = { 'bare.ts': BARE, 'service.ts': SERVICE, 'service.test.ts': SERVICE_TEST };
  for (const [name, text] of Object.entries(programs)) await writeFile(join(service, name), text);
  const bare = { ...STRICT, ...RESOLUTIONS[kind], types: [], skipLibCheck: false };
  // Does not check the declarations of frameworks.
  const full = { ...STRICT, ...RESOLUTIONS[kind], types: ['node'], skipLibCheck: true };
  const said = [
    await compile(service, ['--noEmit'], { compilerOptions: bare, files: ['bare.ts'] }),
    await compile(service, ['--noEmit'], { compilerOptions: full, files: ['service.ts', 'service.test.ts'] }),
  ];
  return said.join('');
}

/** Runs the test of the service against these nodes, and returns what its runner says. */
export async function testService(service: string, nodes: readonly string[]): Promise<string> {
  const compilerOptions = { ...STRICT, ...RESOLUTIONS.nodenext, types: ['node'], skipLibCheck: true };
  const said = await compile(service, [], { compilerOptions, files: ['service.ts', 'service.test.ts'] });
  if (said !== '') throw new Error(said);
  const env = { ...process.env, QUORATE_NODES: nodes.join() };
  const args = ['--test', '--test-reporter=tap', 'service.test.js'];
  const { stdout } = await run(process.execPath, args, { cwd: service, env }).catch(
    (error: { readonly stdout: string }) => error,
  );
  return stdout;
}

/** Matches the output if all tests of the service ran and passed. */
export const ALL_PASS = new RegExp(`^# tests ${TESTS}$[^]*^# pass ${TESTS}$[^]*^# fail 0$`, 'm');

async function compile(service: string, args: readonly string[], config: object): Promise<string> {
  await writeFile(join(service, 'tsconfig.json'), JSON.stringify(config));
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  const { stdout } = await run(process.execPath, [tsc, '-p', service, ...args]).catch(
    (error: { readonly stdout: string }) => error,
  );
  return stdout;
}
