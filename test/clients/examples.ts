/** The programs of `docs/languages/`, and how to build and run each with packages of Debian. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from '../package/packed.ts';
import { type Program, REDIGO } from './programs.ts';

export type Protocol = 'http' | 'redis';

/** A program of a page, which names its file in its first comment. */
export interface Example {
  readonly file: string;
  readonly text: string;
}

/** Class path of Jedis with its dependencies. Most Debian releases lack it. */
const JEDIS = process.env['JEDIS_CLASSPATH'];
const JARS =
  JEDIS ?? ['jedis', 'commons-pool2', 'slf4j-api'].map((name) => `/usr/share/java/${name}.jar`).join(':');

type Recipe = Omit<Program, 'name'> & { readonly protocol: Protocol };

/** A program that runs from its source. */
function interpreted(protocol: Protocol, packages: readonly string[], command: string, file: string): Recipe {
  return { protocol, packages, run: (output) => [command, beside(output, file)] };
}

function go(protocol: Protocol, packages: readonly string[], file: string): Recipe {
  const { env = {} } = REDIGO;
  return {
    protocol,
    packages,
    env,
    build: (output) => ['go', 'build', '-o', output, beside(output, file)],
    run: (output) => [output],
  };
}

function java(protocol: Protocol, packages: readonly string[], name: string): Recipe {
  return {
    protocol,
    packages: ['default-jdk-headless', ...packages],
    build: (output) => ['javac', '-cp', JARS, '-d', dirname(output), beside(output, `${name}.java`)],
    run: (output) => ['java', '-cp', `${dirname(output)}:${JARS}`, name],
  };
}

function beside(output: string, file: string): string {
  return join(dirname(output), file);
}

const RECIPES: Readonly<Record<string, Recipe>> = {
  'limit_http.py': interpreted('http', ['python3'], '/usr/bin/python3', 'limit_http.py'),
  'limit_redis.py': interpreted('redis', ['python3', 'python3-redis'], '/usr/bin/python3', 'limit_redis.py'),
  'limit_http.go': go('http', ['golang-go'], 'limit_http.go'),
  'limit_redis.go': go('redis', REDIGO.packages, 'limit_redis.go'),
  'LimitHttp.java': java('http', [], 'LimitHttp'),
  'LimitRedis.java': java('redis', JEDIS === undefined ? ['libjedis-java'] : [], 'LimitRedis'),
  'limit_http.php': interpreted('http', ['php-cli', 'php-curl'], 'php', 'limit_http.php'),
  'limit_redis.php': interpreted('redis', ['php-cli', 'php-redis'], 'php', 'limit_redis.php'),
};

export function examplesOf(page: string): Example[] {
  return [...page.matchAll(/^```(?:python|go|java|php)\n(.*?)^```$/gms)].map(([, text = '']) => {
    const [, file] = /(\w+\.(?:py|go|java|php)): /.exec(text) ?? [];
    if (file === undefined) throw new Error(`this example does not name its file: ${text.slice(0, 80)}`);
    return { file, text };
  });
}

const PAGES = ['python.md', 'go.md', 'java.md', 'php.md'];

export const EXAMPLES = PAGES.flatMap((page) =>
  examplesOf(readFileSync(join(ROOT, 'docs', 'languages', page), 'utf8')),
);

/** @throws for a program that this table does not have */
export function programOf(file: string): Program & { readonly protocol: Protocol } {
  const recipe = RECIPES[file];
  if (recipe === undefined) throw new Error(`how is ${file} run? Add it to ${import.meta.filename}`);
  return { name: file, ...recipe };
}
