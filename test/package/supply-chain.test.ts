/** Tests the dependencies: exact versions, permissive licences, and no install scripts except known ones. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ROOT } from './packed.ts';

interface Package {
  readonly version: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
}

const REGISTRY = 'https://registry.npmjs.org/';
const EXACT = /^\d+\.\d+\.\d+$/;
const LICENCES = ['0BSD', 'Apache-2.0', 'BSD-3-Clause', 'ISC', 'MIT'];
/**
 * Packages with native code: both select one of the binaries that come with them, and compile if there is none for the
 * machine. protobufjs prints whether another package wants another version of it.
 */
const WITH_INSTALL_SCRIPT = [
  'node_modules/classic-level',
  'node_modules/msgpackr-extract',
  'node_modules/protobufjs',
];
/** Scripts that npm runs when a package or its repository is installed. */
const INSTALL_SCRIPTS = ['preinstall', 'install', 'postinstall', 'prepare', 'preprepare', 'postprepare'];

let manifest: {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly scripts: Readonly<Record<string, string>>;
};
let locked: readonly (readonly [string, Package])[];

beforeAll(async () => {
  manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as typeof manifest;
  const { packages } = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, Package>>;
  };
  locked = Object.entries(packages).filter(([path]) => path !== '');
});

describe('the dependencies', () => {
  it('have exact versions', () => {
    const all = { ...manifest.dependencies, ...manifest.devDependencies };
    expect(Object.entries(all).filter(([, version]) => !EXACT.test(version))).toEqual([]);
  });

  it('come from the registry, each with its digest', () => {
    const others = locked.filter(
      ([, { resolved = REGISTRY, integrity = '' }]) =>
        !resolved.startsWith(REGISTRY) || !integrity.startsWith('sha512-'),
    );
    expect(others.map(([path]) => path)).toEqual([]);
  });

  it('have permissive licences if they are part of the product', () => {
    const others = locked.filter(([, { dev, license = '' }]) => dev !== true && !LICENCES.includes(license));
    expect(others.map(([path, { license }]) => `${path}: ${license}`)).toEqual([]);
  });

  it('run no install scripts, except those that select native code or print a version', () => {
    const scripted = locked.filter(([, { hasInstallScript }]) => hasInstallScript === true);
    expect(scripted.map(([path]) => path)).toEqual(WITH_INSTALL_SCRIPT);
  });
});

describe('the package itself', () => {
  it('runs nothing when it is installed', () => {
    expect(Object.keys(manifest.scripts).filter((name) => INSTALL_SCRIPTS.includes(name))).toEqual([]);
  });
});
