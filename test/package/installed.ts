/**
 * `npm run package:check`: packs both packages, installs each into an empty folder from the registry, and uses them
 * like a user: the command, a cluster, the library with its types, and a service with the client. It is not part of
 * `npm test`, which needs no network.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { allowAt, eventually, freeBasePort } from '../cluster/harness.ts';
import {
  ALL_PASS,
  compileService,
  installClient,
  installedManifest,
  packClient,
  testService,
} from './client-service.ts';
import { packedFiles, ROOT } from './packed.ts';

const run = promisify(execFile);
const PROGRAM = `declare const console: { log(...values: unknown[]): void };
import { InvalidLimiterArgumentError, RateLimiter } from 'quorate';
const limiter = new RateLimiter(2, 10_000);
const decisions: readonly boolean[] = [0, 1, 2].map((at: number) => limiter.allow('ada', at));
try {
  limiter.allow('', 0);
} catch (error) {
  if (error instanceof InvalidLimiterArgumentError) console.log(decisions.join(), error.field satisfies string);
}
// @ts-expect-error a limiter has no default limit
export const unlimited = (): RateLimiter => new RateLimiter();
`;
const TYPESCRIPT = { strict: true, target: 'es2023', lib: ['es2023'], types: [], skipLibCheck: false };
const NODES = [1, 2, 3];
const FRAMEWORKS = ['express', 'fastify', 'hono', '@types/express', '@types/node'];

function expectThat(condition: boolean, what: string): void {
  if (!condition) throw new Error(`failed: ${what}`);
  console.log(`ok: ${what}`);
}

async function install(folder: string): Promise<void> {
  const { stdout } = await run('npm', ['pack', '--pack-destination', folder], { cwd: ROOT });
  const tarball = stdout.trim().split('\n').at(-1) ?? '';
  const { stdout: listed } = await run('tar', ['tzf', join(folder, tarball)]);
  const names = listed
    .trim()
    .split('\n')
    .map((name) => name.replace(/^package\//, ''));
  expectThat(names.toSorted().join() === (await packedFiles()).join(), `${names.length} files, as listed`);
  await writeFile(join(folder, 'package.json'), '{"name":"user","private":true,"type":"module"}');
  const install = ['install', '--no-audit', '--ignore-scripts', `./${tarball}`];
  const { stdout: out, stderr } = await run('npm', install, { cwd: folder });
  console.log(`${out}${stderr}`.trim());
  expectThat(
    !/EBADENGINE|deprecated/.test(out + stderr),
    'it installs without any script, and without a warning about engines',
  );
}

async function useLibrary(folder: string): Promise<void> {
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  await writeFile(join(folder, 'program.ts'), PROGRAM);
  for (const kind of [
    { module: 'nodenext', moduleResolution: 'nodenext' },
    { module: 'esnext', moduleResolution: 'bundler' },
  ]) {
    const config = { compilerOptions: { ...TYPESCRIPT, ...kind }, files: ['program.ts'] };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config));
    await run(process.execPath, [tsc, '-p', folder]).catch((error: { stdout?: string }) => {
      throw new Error(`${kind.moduleResolution}: ${error.stdout ?? 'no output'}`);
    });
    const { stdout } = await run(process.execPath, [join(folder, 'program.js')]);
    expectThat(
      stdout.trim() === 'true,true,false userId',
      `the library and its types, ${kind.moduleResolution}`,
    );
  }
}

/** A service with the client and the frameworks, which are for it to bring, in the versions that are tested here. */
async function prepareService(service: string): Promise<void> {
  const listed = await installClient(service, await packClient(dirname(service)));
  expectThat(Object.keys(listed.dependencies).join() === '@quorate/client', 'the client is one package');
  const manifest = await installedManifest(service);
  expectThat(manifest['scripts'] === undefined, 'the client has no scripts');
  const { devDependencies, dependencies } = JSON.parse(
    await readFile(join(ROOT, 'package.json'), 'utf8'),
  ) as Readonly<Record<'devDependencies' | 'dependencies', Readonly<Record<string, string>>>>;
  const versions = { ...dependencies, ...devDependencies };
  const frameworks = FRAMEWORKS.map((name) => `${name}@${versions[name]}`);
  await run('npm', ['install', '--no-audit', '--ignore-scripts', ...frameworks], { cwd: service });
  for (const kind of ['nodenext', 'bundler'] as const)
    expectThat((await compileService(service, kind)) === '', `the client and its types, ${kind}`);
}

async function useCommand(folder: string, service: string): Promise<void> {
  const quorate = join(folder, 'node_modules', '.bin', 'quorate');
  const { stdout } = await run(quorate, ['--version']);
  expectThat(/^\d+\.\d+\.\d+\n$/.test(stdout), `quorate --version says ${stdout.trim()}`);
  const data = join(folder, 'data');
  const basePort = await freeBasePort();
  await run(quorate, ['init', '--data', data, '--base-port', String(basePort), '--partitions', '4']);
  const nodes: ChildProcess[] = NODES.map((id) =>
    spawn(quorate, ['node', String(id), '--data', data], { stdio: 'ignore' }),
  );
  try {
    await eventually('a grant of a cluster of the installed package', async () => {
      const answer = await allowAt(basePort + 2, { userId: 'ada' }).catch(() => undefined);
      return answer?.status === 200 ? true : undefined;
    });
    expectThat(true, 'three nodes of it grant');
    const said = await testService(
      service,
      NODES.map((id) => `http://127.0.0.1:${basePort + id}`),
    );
    expectThat(ALL_PASS.test(said), 'a service with the client limits by each middleware');
  } finally {
    for (const node of nodes) node.kill('SIGTERM');
    for (const node of nodes) if (node.exitCode === null) await once(node, 'exit');
  }
  expectThat(
    nodes.every(({ exitCode }) => exitCode === 0),
    'they stop with exit code 0',
  );
}

const folder = await mkdtemp(join(tmpdir(), 'quorate-package-'));
try {
  const server = join(folder, 'server');
  const service = join(folder, 'service');
  await mkdir(server);
  await install(server);
  await useLibrary(server);
  await prepareService(service);
  await useCommand(server, service);
} finally {
  await rm(folder, { recursive: true, force: true });
}
process.exit(0);
