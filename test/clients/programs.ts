/** Lists the Redis clients in Debian, and how to build and run a program with each. */
import { join } from 'node:path';

/** Folder of the sources. TypeScript does not copy them to the build. */
const SOURCES = join('test', 'clients', 'programs');

export interface Program {
  readonly name: string;
  /** Debian packages of the compiler and of the client. */
  readonly packages: readonly string[];
  /** Build command that writes to `output`; absent if the source runs directly. */
  readonly build?: (output: string) => readonly [string, ...string[]];
  readonly env?: Readonly<Record<string, string>>;
  /** Run command. @param output the built program */
  readonly run: (output: string) => readonly [string, ...string[]];
}

function source(name: string): string {
  return join(SOURCES, name);
}

/** A Redis client for Go. */
export const REDIGO: Program = {
  name: 'redigo',
  packages: ['golang-go', 'golang-github-gomodule-redigo-dev'],
  build: (output) => ['go', 'build', '-o', output, source('redigo.go')],
  // Debian installs Go packages in a GOPATH, without modules.
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
