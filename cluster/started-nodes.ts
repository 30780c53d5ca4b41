/** The node processes that `npm start` has started, and why they end. */
import { NodeEndedError } from '../src/cli/explain-error.ts';
import { logPathOf, maybeRotate } from './node-log.ts';
import {
  type CommandWrapper,
  type NodeExit,
  type NodeProcess,
  startNodeProcess,
  stopNodeProcess,
} from './processes.ts';

const LOG_CHECK_MILLIS = 1_000;

/** Starts the nodes of a directory, and stops them. */
export class StartedNodes {
  readonly #nodes: readonly NodeProcess[];
  /** Ids of nodes that were stopped because they do not belong to the cluster any more. */
  readonly #excluded = new Set<number>();
  readonly #logChecks: NodeJS.Timeout;

  /** @param isInsecure start them even if other machines can reach them without TLS */
  constructor(directory: string, ids: readonly number[], isInsecure: boolean) {
    const wrap: CommandWrapper = (command) => (isInsecure ? [...command, '--insecure'] : command);
    this.#nodes = ids.map((id) => {
      // The log of an earlier start may be too long.
      maybeRotate(logPathOf(directory, id));
      return startNodeProcess(directory, id, wrap);
    });
    this.#logChecks = setInterval(() => {
      for (const node of this.#nodes) node.boundLog();
    }, LOG_CHECK_MILLIS);
  }

  /** Stops a node that was removed from the cluster or is refused by it. Its end is not a failure then. */
  readonly exclude = (id: number, reason: string): void => {
    if (this.#excluded.has(id)) return;
    this.#excluded.add(id);
    console.log(`node ${id} is stopped: ${reason}`);
    const node = this.#nodes.find((other) => other.id === id);
    if (node !== undefined) void stopNodeProcess(node);
  };

  isExcluded(id: number): boolean {
    return this.#excluded.has(id);
  }

  has(pid: number): boolean {
    return this.#nodes.some(({ child }) => child.pid === pid);
  }

  /** Calls `ended` for each node that ends, unless it is excluded. */
  onEnded(ended: (node: NodeProcess, exit: NodeExit) => void): void {
    for (const node of this.#nodes) {
      void node.exited.then((exit) => {
        if (!this.#excluded.has(node.id)) ended(node, exit);
      });
    }
  }

  /** Rejects when the first node ends. @throws NodeEndedError with the exit code of the node */
  async untilOneEnds(): Promise<never> {
    return new Promise((_, reject) => {
      this.onEnded(({ id, logPath, lastWords }, { code, signal }) => {
        const why = lastWords() ?? (signal === null ? `exit code ${code}` : `ended by ${signal}`);
        const message = `node ${id} ended before the cluster was ready: ${why} (log: ${logPath})`;
        reject(new NodeEndedError(message, code));
      });
    });
  }

  async stop(): Promise<void> {
    clearInterval(this.#logChecks);
    await Promise.all(this.#nodes.map((node) => stopNodeProcess(node)));
  }
}
