/** Tests the log format of a node: JSON by default, plain lines on a terminal, and either by option. */
import { spawnSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Session } from '../cluster/cluster-script.ts';
import { freeBasePort, temporaryDirectory } from '../cluster/harness.ts';
import { CLI, quorate } from '../cluster/nodes-command.ts';
import { ended } from './command.ts';

/** `script` of util-linux runs a command at a terminal. */
const HAS_TERMINAL = spawnSync('script', ['--version']).status === 0;
const PRETTY = /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: node is up/m;

let directory: string;
let sessions: Session[];
beforeEach(async () => {
  directory = await temporaryDirectory();
  sessions = [];
  const basePort = String(await freeBasePort());
  await quorate('init', '--data', directory, '--nodes', '1', '--base-port', basePort);
});
afterEach(async () => {
  await Promise.all(sessions.map(async (session) => session.end('SIGTERM')));
  await rm(directory, { recursive: true });
});

/** Runs a node until it stops, and returns its log. */
async function logOf(args: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<string> {
  const node = new Session([CLI, 'node', '1', '--data', directory, ...args], environment);
  sessions.push(node);
  await node.says('node is up');
  expect(await node.end('SIGTERM')).toBe(0);
  return node.output;
}

function isJson(text: string): boolean {
  try {
    for (const line of text.trim().split('\n')) JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}

it('is JSON if the output is no terminal', async () => {
  expect(isJson(await logOf([]))).toBe(true);
});

it.each([
  ['an option', ['--log-format', 'pretty'], {}],
  ['a variable', [], { QUORATE_LOG_FORMAT: 'pretty' }],
])('is plain text by %s, to its last line, without colours', async (_how, args, environment) => {
  const log = await logOf(args, environment);
  expect(log).toMatch(PRETTY);
  expect(log).toContain('INFO: stopping {"node":1,"reason":"SIGTERM"}');
  expect(log).not.toContain('\u001B');
});

it('follows the option if a variable says something else', async () => {
  expect(isJson(await logOf(['--log-format', 'json'], { QUORATE_LOG_FORMAT: 'pretty' }))).toBe(true);
});

it.runIf(HAS_TERMINAL)('is plain text at a terminal', async () => {
  const command = `${process.execPath} ${CLI} node 1 --data ${directory}`;
  const terminal = new Session(['-qec', command, '/dev/null'], { NO_COLOR: '1' }, 'script');
  sessions.push(terminal);
  await terminal.says('node is up');
  expect(terminal.output).toMatch(PRETTY);
});

it('refuses another format, and names the known ones', async () => {
  const { code, said } = await ended('quorate', ['node', '1', '--log-format', 'xml'], directory);
  expect(said).toContain(
    "'--log-format <format>' argument 'xml' is invalid. Allowed choices are auto, pretty, json.",
  );
  expect(code).toBe(64);
});
