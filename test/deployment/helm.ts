/** Finds Helm, either installed or from an npm package for Linux on x64, and renders charts without a cluster. */
import { execFile } from 'node:child_process';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ASSET_FILE } from '@aws-cdk/asset-kubectl-v20';
import { unzipSync } from 'fflate';
import { ROOT } from '../cli/command.ts';
import { programOf } from '../gateways/gateway.ts';

const run = promisify(execFile);
const CHART = join(ROOT, 'cluster', 'kubernetes', 'helm', 'quorate');
const CACHE = join(ROOT, 'node_modules', '.cache', 'helm');
const NAME = 'helm/helm';
const OUTPUT_BYTES_MAX = 4 * 1024 * 1024;

/** Path of Helm; undefined if there is none for this machine. */
export async function helmProgram(): Promise<string | undefined> {
  const installed = programOf('helm', 'HELM');
  if (installed !== undefined) return installed;
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined;
  const path = join(CACHE, 'helm');
  if (existsSync(path)) return path;
  const { [NAME]: program } = unzipSync(await readFile(ASSET_FILE), { filter: ({ name }) => name === NAME });
  if (program === undefined) throw new Error(`${ASSET_FILE} holds no ${NAME}`);
  await mkdir(CACHE, { recursive: true });
  // Renamed into place, because another process may search for it.
  const unfinished = `${path}.${process.pid}`;
  await writeFile(unfinished, program, { mode: 0o755 });
  await rename(unfinished, path);
  return path;
}

export interface Rendering {
  /** Arguments for the namespace `ns`. */
  readonly release?: string;
  readonly values?: Readonly<Record<string, unknown>>;
}

/** Renders the chart with these values. @throws with Helm's message if it refuses them */
export async function rendered(
  helm: string,
  { release = 'quorate', values = {} }: Rendering,
): Promise<string> {
  const asked = run(helm, ['template', release, CHART, '--namespace', 'ns', '--values', '-'], {
    maxBuffer: OUTPUT_BYTES_MAX,
  });
  asked.child.stdin?.end(JSON.stringify(values));
  return asked.then(
    ({ stdout }) => stdout,
    (error: unknown) => {
      throw new Error(String((error as { readonly stderr?: string }).stderr));
    },
  );
}

/** Output of `helm lint`. */
export async function linted(helm: string): Promise<string> {
  const { stdout } = await run(helm, ['lint', '--strict', CHART]);
  return stdout;
}
