/** The examples of a guide as programs, and what they say they print. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
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

export function examplesOf(guide: string): Example[] {
  const text = readFileSync(join(ROOT, guide), 'utf8');
  return [...text.matchAll(/^```js\n(.*?)^```$/gms)].map(([, program = ''], i) => ({
    name: `${guide}, ${i + 1}`,
    program,
    prints: [...program.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].map(([, line = '']) => line),
    isService: /\blisten\(/.test(program),
  }));
}

/** Runs examples inside the package, so that it is imported by its name, against nodes at `ports`. */
export class ExampleRunner {
  readonly #directory: string;
  readonly #ports: readonly number[];
  readonly #children: ChildProcess[] = [];

  constructor(ports: readonly number[]) {
    this.#ports = ports;
    const parent = join(ROOT, 'dist');
    mkdirSync(parent, { recursive: true });
    this.#directory = mkdtempSync(join(parent, 'guide-'));
  }

  /** What the program wrote. @throws Error with what it complained of if it failed */
  async run(example: Example): Promise<string> {
    const child = this.#start(example, SERVICE);
    let out = '';
    let complaints = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (out += text));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (complaints += text));
    const code = await new Promise((resolve) => child.once('close', resolve));
    if (code !== 0) throw new Error(`exit code ${String(code)}: ${complaints}`);
    return out;
  }

  /** Where the service listens, soon. */
  async serve(example: Example): Promise<string> {
    const [port = 0] = await freePorts(1);
    this.#start(example, String(port));
    return `http://localhost:${port}/`;
  }

  #start({ name, program }: Example, servicePort: string): ChildProcess {
    const path = join(this.#directory, `${name.replace(/\W/g, '-')}.mjs`);
    let text = program.replaceAll(SERVICE, servicePort);
    for (const [i, port] of this.#ports.entries()) text = text.replaceAll(String(NODE + i), String(port));
    writeFileSync(path, text);
    const child = spawn(process.execPath, [path], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#children.push(child);
    return child;
  }

  stop(): void {
    for (const child of this.#children) child.kill('SIGKILL');
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
