/** Tests `@quorate/client` installed by npm into a folder outside the checkout. */
import { readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { temporaryDirectory, TestCluster } from '../cluster/harness.ts';
import {
  ALL_PASS,
  compileService,
  installClient,
  installedManifest,
  type Listed,
  packClient,
  testService,
} from './client-service.ts';
import { ROOT } from './packed.ts';

const PAGES = ['GUIDE.md', 'LICENSE', 'MIDDLEWARE.md', 'README.md', 'package.json'];
/** The service states its own limit. */
const RULES = [{ id: 'default', limit: 100, windowMillis: 60_000, clock: 'cluster' }] as const;

let folder: string;
let service: string;
let listed: Listed;
/** Texts of the installed package's files, by path. */
let files: ReadonlyMap<string, string>;

beforeAll(async () => {
  folder = await temporaryDirectory();
  service = join(folder, 'service');
  listed = await installClient(service, await packClient(folder));
  const installed = join(service, 'node_modules/@quorate/client');
  const paths = readdirSync(installed, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
  files = new Map(paths.map((path) => [path.slice(installed.length + 1), readFileSync(path, 'utf8')]));
  // The frameworks of the service are those of the checkout: Node and the compiler search parent folders for them.
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('the package of the client', () => {
  it('installs without a registry, and as the only package', () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    expect(Object.entries(listed.dependencies).map(([name, { version }]) => `${name} ${version}`)).toEqual([
      `@quorate/client ${version}`,
    ]);
    expect(listed.dependencies['@quorate/client']).not.toHaveProperty('dependencies');
    const lockfile = JSON.parse(readFileSync(join(service, 'package-lock.json'), 'utf8')) as {
      readonly packages: Readonly<Record<string, { readonly hasInstallScript?: boolean }>>;
    };
    expect(Object.keys(lockfile.packages)).toEqual(['', 'node_modules/@quorate/client']);
  });

  it('has no scripts, no dependencies and no peer dependencies', async () => {
    const manifest = await installedManifest(service);
    expect(Object.keys(manifest).filter((field) => /scripts|dependencies|bin|gypfile/i.test(field))).toEqual(
      [],
    );
  });

  it('holds compiled modules, their types and the pages, and no other file', () => {
    const others = [...files.keys()].filter(
      (path) => !/^dist\/(?:[\w-]+\/)+[\w-]+\.(?:js|d\.ts)$/.test(path),
    );
    expect(others.toSorted()).toEqual(PAGES);
    const rooms = new Set([...files.keys()].filter((path) => path.startsWith('dist/')).map(dirname));
    expect([...rooms].toSorted()).toEqual([
      'dist/api',
      'dist/client',
      'dist/client/middleware',
      'dist/limiter',
    ]);
  });

  it('refers only to source maps and modules that it contains', () => {
    const wrong = [...files].flatMap(([path, text]) => {
      if (!path.startsWith('dist/')) return [];
      const imported = [...text.matchAll(/^(?:import|export)\b[^;]*?\bfrom '([^']+)'/gm)].map(
        ([, target = '']) => target,
      );
      const missing = imported.filter((target) => {
        if (target.startsWith('node:')) return false;
        const module = join(dirname(path), target).replace(/\.[jt]s$/, '');
        return !target.startsWith('.') || !files.has(`${module}${path.endsWith('.js') ? '.js' : '.d.ts'}`);
      });
      return text.includes('sourceMappingURL') ? [path, ...missing] : missing;
    });
    expect(wrong).toEqual([]);
  });

  it('has pages that link only to its own pages', () => {
    const links = PAGES.filter((path) => path.endsWith('.md')).flatMap((path) =>
      [...(files.get(path) ?? '').matchAll(/\]\(([^)#\s]+)/g)].map(([, link = '']) => link),
    );
    expect(links).toContain('MIDDLEWARE.md');
    expect(links.filter((link) => !files.has(link))).toEqual([]);
  });
});

describe('a service with it', () => {
  it.each(['nodenext', 'bundler'] as const)('compiles with its types, by %s', async (kind) => {
    expect(await compileService(service, kind)).toBe('');
  });

  it('limits with each middleware, as its own test shows at a real cluster', async () => {
    const cluster = await TestCluster.start({ partitions: 2, rules: RULES });
    try {
      const nodes = cluster.ids.map((id) => `http://127.0.0.1:${cluster.port(id)}`);
      expect(await testService(service, nodes)).toMatch(ALL_PASS);
    } finally {
      await cluster.stop();
    }
  });
});
