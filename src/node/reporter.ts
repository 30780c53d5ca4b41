/** Tells the peers twice a second how the groups of this node are doing, who counts which rules there are, and its log if the rules of its file are overruled. */
import { encodeNodeReport } from '../wire/node-report.ts';
import { reportOf } from './cluster-view.ts';
import type { NodeCore } from './node-core.ts';
import type { NodeParts } from './node-parts.ts';
import { rulesInForce, RulesWatch } from './rules-in-force.ts';

export class Reporter {
  readonly #parts: NodeParts;
  readonly #core: NodeCore;
  readonly #rules: RulesWatch;

  constructor(parts: NodeParts, core: NodeCore) {
    this.#parts = parts;
    this.#core = core;
    const { config, logger } = parts.init;
    const { rules } = config;
    this.#rules = new RulesWatch(rules, ({ version }) => {
      const versions = { inForce: version, ofFile: rules.version };
      // As it is after every change of a running cluster: to raise the file would take that back.
      if (version > rules.version)
        logger.info(versions, 'newer rules than those of cluster.json are in force');
      else
        logger.warn(
          versions,
          `the rules of cluster.json are not in force, and will not be: raise its rules.version above ${version}`,
        );
    });
  }

  report(): void {
    const { init, self, memberCache, view, transport, usage } = this.#parts;
    const replicas = [...this.#core.partitions.values()];
    this.#rules.look(replicas);
    const rules = rulesInForce(replicas);
    memberCache.rulesInForce(rules);
    usage.look(rules);
    const { nodeId, version: release } = init;
    const own = reportOf(this.#core, { nodeId, pid: process.pid, resp: self.resp, release });
    view.update(own);
    const payload = encodeNodeReport(own);
    for (const peer of transport.peers) transport.send(peer, 'status', payload);
  }
}
