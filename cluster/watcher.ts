/** Says what happens to a local cluster that is up: nodes that end or come back, and leaders that move. */
import type { ClusterReport } from '../src/api/cluster-report.ts';
import type { ClusterConfig } from '../src/config/config.ts';
import { describeLeaders } from './introduce.ts';
import { clusterReport, type NodeExit, type NodeProcess, stateOf } from './processes.ts';

interface WatcherInit {
  readonly config: ClusterConfig;
  /** When it begins. */
  readonly status: ClusterReport;
  /** Where the nodes have their data, as the command line says it. */
  readonly data: string;
  /** Told when the cluster has no place for a node any more. */
  readonly exclude: (id: number, reason: string) => void;
}

export class Watcher {
  readonly #init: WatcherInit;
  #leaders: string;
  /** Nodes that ended, by the process that they were. */
  readonly #ended = new Map<number, number | undefined>();

  constructor(init: WatcherInit) {
    this.#init = init;
    this.#leaders = describeLeaders(init.status);
  }

  nodeEnded({ id, child, logPath, lastWords }: NodeProcess, { code, signal }: NodeExit): void {
    this.#ended.set(id, child.pid);
    const how = signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`;
    const data = this.#init.data === './data' ? '' : ` --data ${this.#init.data}`;
    console.log(`node ${id} ${how} (log: ${logPath})`);
    const words = lastWords();
    if (words !== undefined) console.log(`  ${words}`);
    console.log(`  restart it with: npm run node -- ${id}${data}`);
  }

  async look(): Promise<void> {
    const { config, exclude } = this.#init;
    for (const node of config.nodes) {
      const { excluded } = await stateOf(node, config.tls);
      if (excluded !== undefined) exclude(node.id, excluded);
    }
    const status = await clusterReport(config);
    if (status === undefined) return;
    for (const { id, up, pid } of status.nodes) {
      // A report may be older than the end of the process that it tells of.
      if (!up || !this.#ended.has(id) || this.#ended.get(id) === pid) continue;
      this.#ended.delete(id);
      console.log(`node ${id} is up again (pid ${pid})`);
    }
    const leaders = describeLeaders(status);
    if (leaders !== this.#leaders) console.log(leaders);
    this.#leaders = leaders;
  }
}
