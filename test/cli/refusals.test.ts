/** Tests that typical mistakes of a new user get a sentence and an exit code, and leave no files behind. */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { freeBasePort, temporaryDirectory } from '../cluster/harness.ts';
import { ended, ran } from './command.ts';

const USAGE = 64;
const UNAVAILABLE = 69;
const FATAL = 70;

let directory: string;
let basePort: string;
beforeEach(async () => {
  directory = await temporaryDirectory();
  basePort = String(await freeBasePort());
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});

async function listenOn(port: number): Promise<Server> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return server;
}

describe.each([
  ['quorate', ['nonsense'], "unknown command 'nonsense'"],
  ['quorate', ['node'], "missing required argument 'id'"],
  ['quorate', ['node', '1'], 'data holds no cluster.json; create one with `quorate init`'],
  ['quorate', ['init', '--limit', 'many'], "'--limit <n>' argument 'many' is invalid"],
  ['quorate', ['init', '--base-port', '65000'], "'--base-port <n>' argument '65000' is invalid"],
  ['quorate', ['join', '4', '--http', 'a:1', '--peer', 'b:1'], 'data holds no cluster.json'],
  ['quorate', ['nodes', 'remove', '2', '--node', 'here'], 'expected host:port'],
  ['quorate', ['nodes', 'remove', '2', '--node', '127.0.0.1:x'], 'expected host:port'],
  ['quorate', ['drain', '0'], "value '0' is invalid for argument 'id'. expected a whole number from 1 to"],
  ['quorate', ['allow'], '<id> is missing: name a user, or give --descriptor name=value'],
  [
    'quorate',
    ['users', 'block', 'ada', '--duration', '10m'],
    'expected a whole number of milliseconds from 1 to 2678400000',
  ],
  ['quorate', ['tokens', 'revoke', 'ID'], 'expected 8 lower-case letters and digits'],
  ['start', ['--nodes', '4'], 'expected 3 or 5'],
  ['start', ['--data='], "'--data <dir>' argument '' is invalid. expected a directory"],
  ['start', ['--data', '/dev/null'], 'expected a directory, but /dev/null is a file'],
  ['quorate', ['init', '--data', '/dev/null/x/y'], 'expected a directory, but /dev/null is a file'],
] as const)('%s %j', (command, args, message) => {
  it('is refused in a sentence that names the option and its bound, and leaves no directory behind', async () => {
    const { code, said } = await (command === 'start'
      ? ended(command, args, directory)
      : ran(args, directory));
    expect(said).toContain(message);
    expect(said).toMatch(/^quorate: /);
    expect(code).toBe(USAGE);
    expect(await readdir(directory)).toEqual([]);
  });
});

describe('a port in use', () => {
  let taken: Server;
  beforeEach(async () => {
    taken = await listenOn(Number(basePort) + 1_002);
  });
  afterEach(async () => {
    await new Promise((resolve) => taken.close(resolve));
  });

  it('is named by a node that cannot listen, with advice', async () => {
    await ran(['init', '--base-port', basePort], directory);
    const { code, said } = await ended('quorate', ['node', '2'], directory);
    expect(said).toContain(`port ${Number(basePort) + 1_002} on 127.0.0.1 is in use by another program`);
    expect(said).toContain('`npm start -- --base-port N`, which moves a cluster that exists, too');
    expect(code).toBe(UNAVAILABLE);
  });

  it('is found before any file is created', async () => {
    const { code, said } = await ended('start', ['--base-port', basePort], directory);
    expect(said).toContain(`port ${Number(basePort) + 1_002} on 127.0.0.1 is in use by another program`);
    expect(code).toBe(UNAVAILABLE);
    expect(await readdir(directory)).toEqual([]);
  });

  it('does not delete the cluster that --fresh would replace', async () => {
    await ran(['init', '--base-port', String(await freeBasePort())], directory);
    const before = await readdir(join(directory, 'data'));
    const { code } = await ended('start', ['--fresh', '--base-port', basePort], directory);
    expect(code).toBe(UNAVAILABLE);
    expect(await readdir(join(directory, 'data'))).toEqual(before);
  });
});

describe('a cluster directory', () => {
  beforeEach(async () => {
    await ran(['init', '--base-port', basePort], directory);
  });

  it('that lacks the given node id is refused', async () => {
    const { code, said } = await ran(['node', '9'], directory);
    expect(said).toBe('quorate: <id> 9 is none of the nodes in ./data/cluster.json: 1, 2, 3');
    expect(code).toBe(USAGE);
  });

  it('with another number of nodes than the option is refused: the message says how to add nodes, and then how to start over', async () => {
    const { code, said } = await ended('start', ['--nodes', '5'], directory);
    expect(said).toMatch(/^quorate: --nodes 5 .* created with 3: .*`quorate join`.* --fresh to delete it/);
    expect(code).toBe(USAGE);
  });

  it('is not created twice', async () => {
    const { code, said } = await ran(['init'], directory);
    expect(said).toContain('./data holds a cluster already');
    expect(code).toBe(USAGE);
  });

  it.each([
    ['quorate', ['node', '1'], '{', 'cluster.json is not JSON'],
    ['start', [], '{}', 'cluster.json: clusterId must be a string'],
  ] as const)('with a broken cluster.json is refused: %s %j', async (command, args, text, message) => {
    await writeFile(join(directory, 'data', 'cluster.json'), text);
    const { code, said } = await ended(command, args, directory);
    expect(said).toContain(message);
    expect(code).toBe(USAGE);
    expect(await readdir(join(directory, 'data'))).not.toContain('logs');
  });

  it('with another setting than its databases makes the cluster script end with the exit code of the node', async () => {
    await ran(['init', '--data', 'one', '--nodes', '1', '--base-port', basePort], directory);
    const path = join(directory, 'one', 'cluster.json');
    const text = await readFile(path, 'utf8');
    const edited = text.replace(/"partitions": \d+/, '"partitions": 8');
    expect(edited).not.toBe(text);
    await writeFile(path, edited);
    const { code, said } = await ended('start', ['--data', 'one'], directory);
    expect(said).toContain('node 1 ended before the cluster was ready');
    expect(said).toContain('partitions');
    expect(code).toBe(USAGE);
  });

  it('with a damaged database makes the cluster script say why a node ended, not only where its log is', async () => {
    await writeFile(join(directory, 'data', 'node-2', 'DAMAGED'), 'something is wrong\n');
    const { code, said } = await ended('start', [], directory);
    expect(said).toContain(
      'node 2 ended before the cluster was ready: the database in data/node-2 is damaged',
    );
    expect(code).toBe(FATAL);
  });
});
