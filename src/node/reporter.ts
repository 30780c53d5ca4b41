/**
 * Reports the state of this node's groups to its peers twice a second, and updates the rules for usage counting.
 */
import { encodeNodeReport } from '../wire/node-report.ts';
import { reportOf } from './cluster-view.ts';
import type { NodeCore } from './node-core.ts';
import type { NodeParts } from './node-parts.ts';
import { rulesInForce } from './rules-in-force.ts';

/** The reporter of one node. */
export class Reporter {
  readonly #parts: NodeParts;
  readonly #core: NodeCore;

  constructor(parts: NodeParts, core: NodeCore) {
    this.#parts = parts;
    this.#core = core;
  }

  /** Sends a report now. */
  report(): void {
    const { init, self, view, transport, usage, pace } = this.#parts;
    const replicas = [...this.#core.partitions.values()];
    const rules = rulesInForce(replicas);
    usage.peek(rules);
    const { nodeId, version: release } = init;
    const own = reportOf(this.#core, {
      nodeId,
      pid: process.pid,
      resp: self.resp,
      release,
      pace: pace.of(this.#core),
    });
    view.update(own);
    const payload = encodeNodeReport(own);
    for (const peer of transport.peers) transport.send(peer, 'status', payload);
  }
}
