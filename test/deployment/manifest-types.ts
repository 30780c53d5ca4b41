/**
 * Checks manifests of Kubernetes and of the Prometheus operator with the compiler, against types made from the
 * published APIs.
 */
import { execFile } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { ROOT } from '../cli/command.ts';
import { temporaryDirectory } from '../cluster/harness.ts';

const run = promisify(execFile);
const PACKAGES = join(ROOT, 'node_modules');
const OPERATOR = 'monitoring.coreos.com/v1';

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
}

/** Parses a manifest. @throws if it is not YAML or repeats a key */
export function manifestsIn(text: string): readonly Manifest[] {
  const documents = parseAllDocuments(text, { uniqueKeys: true });
  const [error] = documents.flatMap(({ errors }) => errors);
  if (error !== undefined) throw error;
  return documents.flatMap((document) => (document.toJS() as Manifest | null) ?? []);
}

function typeOf(apiVersion: string, kind: string): { readonly type: string; readonly from: string } {
  if (apiVersion === OPERATOR)
    return {
      type: `I${kind}`,
      from: join(PACKAGES, '@kubernetes-models', 'prometheus-operator', OPERATOR, kind),
    };
  const group = apiVersion.includes('/') ? apiVersion.replace('.k8s.io', '') : `core/${apiVersion}`;
  return { type: kind, from: join(PACKAGES, 'kubernetes-types', group) };
}

/** Compiler errors, by the name of the manifest. */
export async function mistakesIn(named: Readonly<Record<string, readonly Manifest[]>>): Promise<string> {
  const directory = await temporaryDirectory();
  try {
    const files = Object.entries(named).map(async ([name, all]) => {
      const lines = all.map(({ apiVersion, kind, ...rest }, i) => {
        const { type, from } = typeOf(apiVersion, kind);
        const value = JSON.stringify({ apiVersion, kind, ...rest }, null, 1);
        return `import type { ${type} as Kind${i} } from ${JSON.stringify(from)};\nexport const value${i}: Kind${i} = ${value};`;
      });
      await writeFile(join(directory, `${name}.ts`), lines.join('\n'));
      return `${name}.ts`;
    });
    const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
    const options = [
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      '--module',
      'esnext',
      '--moduleResolution',
      'bundler',
    ];
    const args = [tsc, ...options, ...(await Promise.all(files))];
    return await run(process.execPath, args, { cwd: directory }).then(
      () => '',
      (error: unknown) => String((error as { readonly stdout?: string }).stdout),
    );
  } finally {
    await rm(directory, { recursive: true });
  }
}
