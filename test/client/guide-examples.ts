/** Extracts the examples of a guide, runs them as programs, and knows the output they promise. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { assembleClientPackage } from '../../cluster/client-package.ts';
import { freePorts } from '../cluster/harness.ts';
import { ROOT } from '../package/packed.ts';

export interface Example {
  /** Name of the guide, and number of the example. */
  readonly name: string;
  readonly program: string;
  /** Output promised in comments after `console.log(...)`. */
  readonly prints: readonly string[];
  /** The program listens on port 3000 and does not end. */
  readonly isService: boolean;
}

const NODE = 8_101;
const SERVICE = '3000';
const HEADING = '## ';

export function examplesOf(guide: string): Example[] {
  const text = readFileSync(join(ROOT, guide), 'utf8');
  return [...text.matchAll(/^```(?:js|ts)\n(.*?)^```$/gms)].map(([, program = ''], i) => ({
    name: `${guide}, ${i + 1}`,
    program,
    prints: [...program.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].map(([, line = '']) => line),
    isService: /\blisten\(/.test(program),
  }));
}

/**
 * Runs all examples in one child process inside the checkout, where the frameworks and `quorate` resolve, with the
 * packed `@quorate/client`. First run the examples that end, then the services, until `stop`.
 */
export class ExampleRun {
  /** Output of each example that ends, by name. */
  readonly printed = new Map<string, string[]>();
  /** Address of each service, by name. */
  readonly urls = new Map<string, string>();
  readonly #directory: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  #name = '';
  #hasEnded = false;
  /** Error output of the process. */
  complaints = '';

  private constructor(directory: string, urls: ReadonlyMap<string, string>) {
    this.#directory = directory;
    this.urls = new Map(urls);
    this.#child = spawn(process.execPath, [join(directory, 'all.mjs')], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#ended = new Promise<void>((resolve) => {
      this.#child.once('close', () => {
        this.#hasEnded = true;
        resolve();
      });
    });
    const { stdout, stderr } = this.#child;
    if (stdout === null || stderr === null) throw new Error('there are pipes');
    createInterface({ input: stdout }).on('line', (line) => this.#read(line));
    stderr.setEncoding('utf8').on('data', (text: string) => (this.complaints += text));
  }

  /** Starts the process. @param ports of nodes, which replace 8101 and the next ones */
  static async start(examples: readonly Example[], ports: readonly number[]): Promise<ExampleRun> {
    const parent = join(ROOT, 'dist');
    mkdirSync(parent, { recursive: true });
    const directory = mkdtempSync(join(parent, 'guide-'));
    assembleClientPackage(join(directory, 'node_modules/@quorate/client'));
    const urls = new Map<string, string>();
    const servicePorts = await freePorts(examples.length);
    const inOrder = examples.toSorted((a, b) => Number(a.isService) - Number(b.isService));
    const all = inOrder.map(({ name, program, isService }, i) => {
      let text = program.replaceAll(SERVICE, String(servicePorts[i]));
      for (const [node, port] of ports.entries()) text = text.replaceAll(String(NODE + node), String(port));
      writeFileSync(join(directory, `${i}.mts`), text);
      if (isService) urls.set(name, `http://localhost:${servicePorts[i]}/`);
      return `console.log(${JSON.stringify(HEADING + name)}); await import('./${i}.mjs');\n`;
    });
    removeTypes(
      directory,
      all.map((_, i) => `${i}.mts`),
    );
    writeFileSync(join(directory, 'all.mjs'), `${all.join('')}console.log(${JSON.stringify(HEADING)});\n`);
    return new ExampleRun(directory, urls);
  }

  #read(line: string): void {
    if (line.startsWith(HEADING)) {
      this.#name = line.slice(HEADING.length);
      this.printed.set(this.#name, []);
    } else this.printed.get(this.#name)?.push(line);
  }

  /** An example got no decision before its deadline, as on a busy machine. */
  get isUndecided(): boolean {
    const isRefused = [...this.printed.values()].flat().some((line) => /^(503|INDEFINITE) /.test(line));
    return isRefused || /^(Unavailable|Indefinite)Error/m.test(this.complaints);
  }

  /**
   * All examples have run, and services listen or soon will. Errors are complete only then, because Node writes them in
   * parts.
   */
  get isReady(): boolean {
    const isOver = this.printed.has('');
    if (this.complaints !== '' && (isOver || this.#hasEnded)) throw new Error(this.complaints);
    return isOver;
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** Compiles the programs to `.mjs` files. That their types are right is tested in `test/docs/examples.test.ts`. */
function removeTypes(directory: string, files: readonly string[]): void {
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const options = ['--ignoreConfig', '--noCheck', '--noResolve', '--target', 'es2023', '--module', 'esnext'];
  execFileSync(process.execPath, [tsc, ...options, ...files], { cwd: directory });
}
