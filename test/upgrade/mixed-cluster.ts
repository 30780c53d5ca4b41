/** Runs a cluster of real processes, each of this version or of the next one. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { reportFrom } from '../../cluster/processes.ts';
import type { ClusterReport, ReportedNode } from '../../src/api/cluster-report.ts';
import { ClusterCommandError } from '../../src/cli/ask-node.ts';
import { drainNode } from '../../src/cli/drain-command.ts';
import { finishUpgrade, showUpgrade } from '../../src/cli/upgrade-command.ts';
import { eventually, TestCluster, type TestConfigOptions } from '../cluster/harness.ts';
import { NextVersion } from './next-version.ts';

type WhichVersion = 'this' | 'next';

const quietly = (): void => undefined;

export class MixedCluster {
  readonly cluster: TestCluster;
  readonly #next: NextVersion;

  private constructor(cluster: TestCluster, next: NextVersion) {
    this.cluster = cluster;
    this.#next = next;
  }

  /** All nodes run this version. */
  static async start(options: TestConfigOptions): Promise<MixedCluster> {
    const mixed = new MixedCluster(await TestCluster.create(options), await NextVersion.make());
    for (const id of mixed.cluster.ids) mixed.run(id, 'this');
    await mixed.cluster.ready();
    return mixed;
  }

  url(id: number): string {
    return `http://127.0.0.1:${this.cluster.port(id)}`;
  }

  run(id: number, which: WhichVersion): void {
    this.cluster.startNode(id, which === 'next' ? this.#next.run : undefined);
  }

  async stop(): Promise<void> {
    await this.cluster.stop();
    await this.#next.remove();
  }

  async kill(id: number, which: WhichVersion): Promise<void> {
    await this.cluster.kill(id);
    this.run(id, which);
  }

  /** Replaces a node in the way that the documents describe. A test may kill it while it starts. */
  async replace(id: number, which: WhichVersion, killMillis?: number): Promise<void> {
    const node = this.url(this.cluster.ids.find((each) => each !== id) ?? id);
    const drain = { node, id, wait: true, timeoutMillis: 60_000, print: quietly };
    expectDone(await drainNode({ ...drain, isDraining: true }));
    this.cluster.signal(id, 'SIGTERM');
    await this.cluster.exitOf(id);
    this.run(id, which);
    if (killMillis !== undefined) {
      await delay(killMillis);
      await this.kill(id, which);
    }
    await eventually(`node ${id} answers`, async () => this.report(id));
    expectDone(await drainNode({ ...drain, isDraining: false }));
    await this.cluster.ready();
  }

  async report(id: number): Promise<ClusterReport | undefined> {
    return reportFrom(this.url(id));
  }

  /** Waits until node `asked` knows this of node `id`. */
  async knows(asked: number, id: number, isMeant: (node: ReportedNode) => boolean): Promise<ReportedNode> {
    return eventually(`node ${asked} knows this of node ${id}`, async () =>
      (await this.report(asked))?.nodes.find((node) => node.id === id && isMeant(node)),
    );
  }

  /** Output of the command, or its error. */
  async finish(asked: number, timeoutMillis = 60_000): Promise<string | ClusterCommandError> {
    const lines: string[] = [];
    try {
      await finishUpgrade({ node: this.url(asked), timeoutMillis, print: (line) => void lines.push(line) });
      return lines.join('\n');
    } catch (error) {
      if (error instanceof ClusterCommandError) return error;
      throw error;
    }
  }

  async status(asked: number): Promise<string> {
    const lines: string[] = [];
    const state = await showUpgrade({ node: this.url(asked), print: (line) => void lines.push(line) });
    return [...lines, state].join('\n');
  }

  /** The leader; undefined while there is none or no node reports one. */
  async leaderOfNodes(): Promise<number | undefined> {
    for (const id of this.cluster.ids) {
      const response = await fetch(new URL('/v1/backup/0', this.url(id))).catch(() => undefined);
      await response?.body?.cancel();
      if (response?.status === 200) return id;
    }
    return undefined;
  }

  /** The whole log of node `id`. */
  async logOf(id: number): Promise<string> {
    return readFile(join(this.cluster.directory, 'logs', `node-${id}.log`), 'utf8');
  }
}

function expectDone(outcome: 'done' | 'pending'): void {
  if (outcome !== 'done') throw new Error('a node was not drained in time');
}
