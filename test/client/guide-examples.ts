/** The examples of a guide as programs, and what they say they print. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { assembleClientPackage } from '../../cluster/client-package.ts';
import { freePorts } from '../cluster/harness.ts';
import { ROOT } from '../package/packed.ts';

export interface Example {
  /** The guide, and which of its examples. */
  readonly name: string;
  readonly program: string;
  /** Lines that the program says in comments behind `console.log(...)`. */
  readonly prints: readonly string[];
  /** It listens on port 3000, and does not end. */
  readonly isService: boolean;
}

const NODE = 8_101;
const SERVICE = '3000';
const HEADING = '## ';

export function examplesOf(guide: string): Example[] {
  const text = readFileSync(join(ROOT, guide), 'utf8');
  return [...text.matchAll(/^```js\n(.*?)^```$/gms)].map(([, program = ''], i) => ({
    name: `${guide}, ${i + 1}`,
    program,
    prints: [...program.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].map(([, line = '']) => line),
    isService: /\blisten\(/.test(program),
  }));
}

/**
 * All examples in one process of their own inside the checkout, which has the frameworks and `quorate` by its name, with
 * `@quorate/client` as it is packed: first those that end, then services, until it is stopped.
 */
export class ExampleRun {
  /** What each of those that end has written, by name. */
  readonly printed = new Map<string, string[]>();
  /** Where each service listens, by name. */
  readonly urls = new Map<string, string>();
  readonly #directory: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  #name = '';
  #hasEnded = false;
  /** What went wrong, if something did. */
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

  /** @param ports of nodes, in place of 8101 and the next ones */
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
      writeFileSync(join(directory, `${i}.mjs`), text);
      if (isService) urls.set(name, `http://localhost:${servicePorts[i]}/`);
      return `console.log(${JSON.stringify(HEADING + name)}); await import('./${i}.mjs');\n`;
    });
    writeFileSync(join(directory, 'all.mjs'), `${all.join('')}console.log(${JSON.stringify(HEADING)});\n`);
    return new ExampleRun(directory, urls);
  }

  #read(line: string): void {
    if (line.startsWith(HEADING)) {
      this.#name = line.slice(HEADING.length);
      this.printed.set(this.#name, []);
    } else this.printed.get(this.#name)?.push(line);
  }

  /** Nobody decided for one of them before its deadline, as on a machine that has other things to do: it ended, or wrote so. */
  get isUndecided(): boolean {
    const isRefused = [...this.printed.values()].flat().some((line) => /^(503|INDEFINITE) /.test(line));
    return isRefused || /^(Unavailable|Indefinite)Error/m.test(this.complaints);
  }

  /** All have been run, and services listen or soon will. What went wrong is told once all of it is here: Node writes it in parts. */
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
