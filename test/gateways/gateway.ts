/** Runs a gateway such as nginx or Envoy, if it is installed, with a sample of cluster/gateways. */
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { ROOT } from '../cli/command.ts';

/** Loopback ports of the gateway and of the nodes it asks. */
export interface Wiring {
  readonly listen: number;
  /** Ports of the nodes. If the sample has more nodes, the last port is used for the rest. */
  readonly quorate: readonly number[];
  readonly application: number;
}

const SYSTEM = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

/** Finds a program; undefined if there is none. @param variable environment variable that may hold its path */
export function programOf(name: string, variable: string): string | undefined {
  const paths = [...(process.env['PATH'] ?? '').split(delimiter), ...SYSTEM].map((folder) =>
    join(folder, name),
  );
  return [process.env[variable] ?? '', ...paths].find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return path !== '';
  } catch {
    return false;
  }
}

/** Reads the sample and replaces its addresses. */
export async function sampleOf(name: string, { listen, quorate, application }: Wiring): Promise<string> {
  const text = await readFile(join(ROOT, 'cluster', 'gateways', name), 'utf8');
  const replaced = text
    .replaceAll(
      /127\.0\.0\.1:810([123])/g,
      (_, id) => `127.0.0.1:${quorate[Number(id) - 1] ?? quorate.at(-1)}`,
    )
    .replaceAll('127.0.0.1:3000', `127.0.0.1:${application}`)
    .replace('listen 8080;', `listen 127.0.0.1:${listen};`)
    .replace(/^:8080 \{/m, `http://127.0.0.1:${listen} {`);
  if (replaced.includes(':8080') || replaced.includes(':8101'))
    throw new Error(`${name} has other addresses`);
  return replaced;
}

export interface Gateway {
  readonly child: ChildProcess;
  /** Error output of the gateway. */
  readonly said: () => string;
}

export async function startNginx(program: string, directory: string, wiring: Wiring): Promise<Gateway> {
  const sample = await sampleOf('nginx.conf', wiring);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((kind) => `${kind}_temp_path ${join(directory, kind)};`)
    .join(' ');
  const config = `pid ${join(directory, 'pid')}; worker_processes 1; events {} http { access_log off; ${temporary}\n${sample}}`;
  await mkdir(directory, { recursive: true });
  // Its workers run as the user nobody if root starts it.
  await chmod(directory, 0o755);
  await writeFile(join(directory, 'nginx.conf'), config);
  return started(program, [
    '-p',
    directory,
    '-e',
    'stderr',
    '-c',
    join(directory, 'nginx.conf'),
    '-g',
    'daemon off;',
  ]);
}

export async function startCaddy(program: string, directory: string, wiring: Wiring): Promise<Gateway> {
  await mkdir(directory, { recursive: true });
  const options = '{\n\tadmin off\n\tauto_https off\n}\n';
  await writeFile(join(directory, 'Caddyfile'), options + (await sampleOf('Caddyfile', wiring)));
  const args = ['run', '--config', join(directory, 'Caddyfile'), '--adapter', 'caddyfile'];
  return started(program, args, { HOME: directory, XDG_DATA_HOME: directory, XDG_CONFIG_HOME: directory });
}

function started(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Gateway {
  const child = spawn(program, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...env },
  });
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-4_096)));
  child.on('error', (error) => (said += error.message));
  return { child, said: () => said };
}

/** Resolves when it is gone. */
export async function stopGateway({ child }: Gateway): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await gone;
}
