/** Prints what happens in a running local cluster: nodes that end or come back, and changes of leaders. */
import type { ClusterReport } from '../src/api/cluster-report.ts';
import type { ClusterConfig } from '../src/config/config.ts';
import { describeLeaders } from './introduce.ts';
import { clusterReport, type NodeExit, type NodeProcess, stateOf } from './processes.ts';

interface WatcherInit {
  readonly config: ClusterConfig;
  /** The report at the start of the watch. */
  readonly status: ClusterReport;
  /** The data directory as given on the command line. */
  readonly data: string;
  /** Called for a node that does not belong to the cluster any more. */
  readonly exclude: (id: number, reason: string) => void;
}

/** Compares each report with the one before. */
export class Watcher {
  readonly #init: WatcherInit;
  #leaders: string;
  /** The process ids of nodes that ended, by node id. */
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

  /** Reads a new report, and prints what changed since the one before. */
  async check(): Promise<void> {
    const { config, exclude } = this.#init;
    for (const node of config.nodes) {
      const { excluded } = await stateOf(node, config.tls);
      if (excluded !== undefined) exclude(node.id, excluded);
    }
    const status = await clusterReport(config);
    if (status === undefined) return;
    for (const { id, up, pid } of status.nodes) {
      // The report may be older than the end of the process.
      if (!up || !this.#ended.has(id) || this.#ended.get(id) === pid) continue;
      this.#ended.delete(id);
      console.log(`node ${id} is up again (pid ${pid})`);
    }
    const leaders = describeLeaders(status);
    if (leaders !== this.#leaders) console.log(leaders);
    this.#leaders = leaders;
  }
}
