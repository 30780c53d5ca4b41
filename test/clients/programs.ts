/** Clients that Debian has, and how a program that uses one is built and run. */
import { join } from 'node:path';

/** Its sources, below the root of the repository: TypeScript leaves them where they are. */
const SOURCES = join('test', 'clients', 'programs');

export interface Program {
  readonly name: string;
  /** Debian packages: what it is written with, and the client. */
  readonly packages: readonly string[];
  /** What makes a program of the source, at `output`; absent: it is run as it is. */
  readonly build?: (output: string) => readonly [string, ...string[]];
  readonly env?: Readonly<Record<string, string>>;
  /** @param output what was built */
  readonly run: (output: string) => readonly [string, ...string[]];
}

function source(name: string): string {
  return join(SOURCES, name);
}

/** The client of Go. */
export const REDIGO: Program = {
  name: 'redigo',
  packages: ['golang-go', 'golang-github-gomodule-redigo-dev'],
  build: (output) => ['go', 'build', '-o', output, source('redigo.go')],
  // Debian keeps sources of packages where Go looked for them before it had modules.
  env: { GOPATH: '/usr/share/gocode', GO111MODULE: 'off' },
  run: (output) => [output],
};

export const PROGRAMS: readonly Program[] = [
  {
    name: 'redis-py',
    packages: ['python3', 'python3-redis'],
    run: () => ['/usr/bin/python3', source('redis_py.py')],
  },
  { name: 'redis-rb', packages: ['ruby', 'ruby-redis'], run: () => ['ruby', source('redis_rb.rb')] },
  { name: 'phpredis', packages: ['php-cli', 'php-redis'], run: () => ['php', source('phpredis.php')] },
  { name: 'predis', packages: ['php-cli', 'php-nrk-predis'], run: () => ['php', source('predis.php')] },
  {
    name: 'hiredis',
    packages: ['gcc', 'libc6-dev', 'libhiredis-dev'],
    build: (output) => ['gcc', source('hiredis.c'), '-o', output, '-lhiredis'],
    run: (output) => [output],
  },
  REDIGO,
];
