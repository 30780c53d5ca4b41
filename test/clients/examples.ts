/** The programs of `docs/languages.md`, and how each is built and run where Debian has what it needs. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from '../package/packed.ts';
import { type Program, REDIGO } from './programs.ts';

export type Protocol = 'http' | 'redis';

/** A program of the page, which names its file in its first comment. */
export interface Example {
  readonly file: string;
  readonly text: string;
}

/** Debian has no Jedis in most releases: who has one names it here, with what it needs. */
const JEDIS = process.env['JEDIS_CLASSPATH'];
const JARS = ['jedis', 'commons-pool2', 'slf4j-api', 'gson'].map((name) => `/usr/share/java/${name}.jar`);

type Command = readonly [string, ...string[]];
type Needed = Pick<Program, 'packages'> & { readonly protocol: Protocol };

/** Run from its source, which lies beside what would be built. */
const INTERPRETED: Readonly<Record<string, Needed & { readonly command: Command }>> = {
  'limit_http.py': { protocol: 'http', packages: ['python3'], command: ['/usr/bin/python3'] },
  'limit_redis.py': {
    protocol: 'redis',
    packages: ['python3', 'python3-redis'],
    command: ['/usr/bin/python3'],
  },
  'LimitHttp.java': { protocol: 'http', packages: ['default-jdk-headless'], command: ['java'] },
  'LimitRedis.java': {
    protocol: 'redis',
    packages: ['default-jdk-headless', ...(JEDIS === undefined ? ['libjedis-java'] : [])],
    command: ['java', '-cp', JEDIS ?? JARS.join(':')],
  },
  'limit_http.php': { protocol: 'http', packages: ['php-cli', 'php-curl'], command: ['php'] },
  'limit_redis.php': { protocol: 'redis', packages: ['php-cli', 'php-redis'], command: ['php'] },
};

const GO: Readonly<Record<string, Needed>> = {
  'limit_http.go': { protocol: 'http', packages: ['golang-go'] },
  'limit_redis.go': { protocol: 'redis', packages: REDIGO.packages },
};

export function examplesOf(page: string): Example[] {
  return [...page.matchAll(/^```(?:python|go|java|php)\n(.*?)^```$/gms)].map(([, text = '']) => {
    const [, file] = /(\w+\.(?:py|go|java|php)): /.exec(text) ?? [];
    if (file === undefined) throw new Error(`this example does not name its file: ${text.slice(0, 80)}`);
    return { file, text };
  });
}

export const EXAMPLES = examplesOf(readFileSync(join(ROOT, 'docs', 'languages.md'), 'utf8'));

/** @throws for a program that the page has and this table has not */
export function programOf(file: string): Program & Needed {
  const interpreted = INTERPRETED[file];
  if (interpreted !== undefined) {
    const { command, ...needed } = interpreted;
    return { name: file, ...needed, run: (output) => [...command, join(dirname(output), file)] };
  }
  const compiled = GO[file];
  if (compiled === undefined) throw new Error(`how is ${file} run? Add it to ${import.meta.filename}`);
  return {
    ...REDIGO,
    ...compiled,
    name: file,
    build: (output) => ['go', 'build', '-o', output, join(dirname(output), file)],
  };
}
