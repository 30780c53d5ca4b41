/**
 * Takes backups of a cluster under test, one after the other and through any node, as `quorate backup` does. Verifies
 * each finished backup as `quorate restore --verify` does. Each attempt is one event of the history. A failed attempt
 * leaves no file.
 */
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { RandomBelow } from '../../raft/core-state.ts';
import { type BackupSource, takeBackup } from '../../src/backup/take-backup.ts';
import { clusterSource } from '../../src/cli/cluster-source.ts';
import { restore } from '../../src/cli/backup-command.ts';
import type { Backup, GroupReported } from './backup-history.ts';
import { fieldsOf } from './history.ts';
import { nowNanos } from './http-attempt.ts';

export interface BackupClientInit {
  readonly random: RandomBelow;
  /** Nodes that may be asked now, whether they are up or not. */
  readonly targets: () => readonly { readonly id: number; readonly port: number }[];
  readonly record: (event: Backup) => void;
  /** Each backup gets a directory in it. */
  readonly folder: string;
  readonly pauseMillisMax: number;
  /** The time limit of one backup. */
  readonly millisMax?: number;
}

/** A backup asks a group ten times in five seconds, and a leader may be paused for as long. */
const MILLIS_MAX = 20_000;
/** Only the newest finished backups are kept: a run of hours makes thousands. */
const KEPT = 2;

type Reported = Pick<Backup, 'rulesVersion' | 'groups' | 'damage'>;
const NOTHING: Reported = { rulesVersion: null, groups: [], damage: null };

export class BackupClient {
  readonly #init: BackupClientInit;
  readonly #finished: string[] = [];
  #isActive = false;
  #taken = 0;
  #running: Promise<void> = Promise.resolve();

  constructor(init: BackupClientInit) {
    this.#init = init;
  }

  start(): void {
    this.#isActive = true;
    this.#running = this.#run();
  }

  /** Resolves when the last backup is finished or has failed. */
  async stop(): Promise<void> {
    this.#isActive = false;
    await this.#running;
  }

  async #run(): Promise<void> {
    const { random, targets, folder, pauseMillisMax } = this.#init;
    await mkdir(folder, { recursive: true });
    while (this.#isActive) {
      const nodes = targets();
      const target = nodes[random(Math.max(1, nodes.length))];
      if (target !== undefined) await this.#take(target);
      await delay(random(pauseMillisMax));
    }
  }

  async #take({ id, port }: { readonly id: number; readonly port: number }): Promise<void> {
    const { folder, record, millisMax = MILLIS_MAX } = this.#init;
    this.#taken += 1;
    const directory = `backup-${this.#taken}`;
    const path = join(folder, directory);
    const invokeNanos = nowNanos();
    const asked = { op: 'backup', directory, node: id, invokeNanos } as const;
    try {
      const source = boundedSource(clusterSource(`http://127.0.0.1:${port}`, undefined), millisMax);
      await takeBackup({ directory: path, source, print: () => undefined });
    } catch (error) {
      const ending = { completeNanos: nowNanos(), status: 0, class: 'fail', error: textOf(error) } as const;
      await rm(path, { recursive: true, force: true });
      return record({ ...asked, ...ending, ...NOTHING });
    }
    const ending = { completeNanos: nowNanos(), status: 200, class: 'ok', error: null } as const;
    record({ ...asked, ...ending, ...(await reportBy(path)), damage: await damageOf(path) });
    this.#finished.push(path);
    for (const old of this.#finished.splice(0, this.#finished.length - KEPT))
      await rm(old, { recursive: true });
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Reads the manifest of a backup. */
async function reportBy(path: string): Promise<Pick<Backup, 'rulesVersion' | 'groups'>> {
  const manifest = fieldsOf(JSON.parse(await readFile(join(path, 'manifest.json'), 'utf8')));
  const groups = (manifest['groups'] as readonly GroupReported[]).map(
    ({ group, index, term, timeMillis, stateHash }) => ({ group, index, term, timeMillis, stateHash }),
  );
  return { rulesVersion: Number(manifest['rulesVersion']), groups };
}

async function damageOf(path: string): Promise<string | null> {
  try {
    await restore({ from: path, data: '', verify: true, json: true, print: () => undefined });
    return null;
  } catch (error) {
    return textOf(error);
  }
}

/** Wraps a source with a time limit. After it every call throws, which ends the backup. */
function boundedSource(source: BackupSource, millis: number): BackupSource {
  const endMillis = performance.now() + millis;
  const inTime = async <T>(asked: Promise<T>): Promise<T> => {
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<never>((_, reject) => {
      const leftMillis = Math.max(0, endMillis - performance.now());
      timer = setTimeout(() => reject(new Error(`not finished after ${millis} ms`)), leftMillis);
    });
    return Promise.race([asked, over]).finally(() => clearTimeout(timer));
  };
  return {
    rulesVersion: async () => inTime(source.rulesVersion()),
    async open(group) {
      const opened = source.open(group);
      try {
        const { snapshot, chunks } = await inTime(opened);
        return { snapshot, chunks: each(chunks, inTime) };
      } catch (error) {
        // A node gives one backup at a time. An answer that comes after the limit is read to its end, otherwise the
        // next backup finds the node busy.
        void opened.then(({ chunks }) => drained(chunks)).catch(() => undefined);
        throw error;
      }
    },
  };
}

async function* each(
  chunks: AsyncIterable<Uint8Array>,
  inTime: <T>(asked: Promise<T>) => Promise<T>,
): AsyncGenerator<Uint8Array> {
  const iterator = chunks[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await inTime(iterator.next());
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    // Not awaited: it waits for a chunk that is on its way, which does not arrive while the node is paused.
    void iterator.return?.().catch(() => undefined);
  }
}

async function drained(chunks: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of chunks);
}
