/**
 * The composition root: starts one node from a configuration and a directory, runs its timers, and stops it. All
 * clocks, timers and randomness of a `NodeCore` come from here, node-parts.ts and load-core.ts.
 */
import type { ClusterConfig } from '../config/config.ts';
import { stateBytesDefault } from '../partition/node-budget.ts';
import type { TransportHandlers } from '../transport/tcp-transport.ts';
import { type ClusterView, reportOf } from './cluster-view.ts';
import { DiskSpaceWatch } from './disk-space-watch.ts';
import { HeapWatch, memoryInUse, memoryLimits } from './memory.ts';
import { loadCore } from './load-core.ts';
import type { NodeCore } from './node-core.ts';
import { closeParts, type NodeInit, type NodeParts, openParts } from './node-parts.ts';
import { stopLimits, takeLeave } from './stop.ts';
import { warmUpOnce } from './warm-up.ts';
import { encodeNodeReport } from '../wire/node-report.ts';
import { rulesInForce } from './replicas.ts';

const REPORT_MILLIS = 500;
const FREE_SPACE_CHECK_MILLIS = 1_000;
const HEAP_CHECK_MILLIS = 1_000;
const FAULT_CHECK_MILLIS = 1_000;

/** A running node. */
export class QuorateNode {
  readonly core: NodeCore;
  readonly #parts: NodeParts;
  readonly #timers: readonly NodeJS.Timeout[];
  #closing: Promise<void> | undefined;
  #ending: Promise<void> | undefined;

  constructor(parts: NodeParts, core: NodeCore, timers: readonly NodeJS.Timeout[]) {
    this.#parts = parts;
    this.core = core;
    this.#timers = timers;
  }

  /** Applies the settings that can change without a restart (`LIVE_SETTINGS`), and no others. */
  reconfigure(config: ClusterConfig): void {
    const { settings, http } = this.#parts;
    settings.replace(config);
    http.settingsChanged();
    this.core.limitState(config.stateBytesMax ?? stateBytesDefault(memoryLimits()));
  }

  /** Stops gracefully: hands over leaderships, answers open requests, closes the disk. Can be called twice. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { readiness, listeners, init } = this.#parts;
    readiness.stopping();
    await takeLeave(this.core, listeners, stopLimits(init.config.timing.requestDeadlineMillis));
    await this.abort();
  }

  /**
   * Stops at once and closes the disk; nothing is handed over, and open requests get no answer. Can be called
   * twice.
   */
  abort(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.core.raft.stop();
    this.core.router.close();
    await closeParts(this.#parts);
  }
}

/**
 * Starts a node: opens the disk, listens, loads what is on disk, joins the peers, and warms up the process before
 * it reports that it is ready. While it loads, HTTP reports the progress. Resolves when the node takes part;
 * leaders may not be elected yet.
 *
 * @throws the errors of `openStore` if the directory must not be used, or the error of `listen`
 */
export async function startNode(init: NodeInit): Promise<QuorateNode> {
  const parts = await openParts(init);
  let core: NodeCore | undefined;
  try {
    // Listen first, so that everybody can see the progress.
    for (const listener of parts.listeners) await listener.listen();
    core = await loadCore(parts);
    parts.readiness.started(core);
    const node = await joined(parts, core);
    // Not awaited: meanwhile the node votes and follows.
    void warmUpOnce({ ...parts.clocks, logger: init.logger }).then(() => parts.readiness.warmedUp());
    return node;
  } catch (error) {
    core?.raft.stop();
    await closeParts(parts);
    throw error;
  }
}

/** Starts the transport and the timers. */
async function joined(parts: NodeParts, core: NodeCore): Promise<QuorateNode> {
  const { init, self, store, fatal, transport, view, shedder, monitor, settings } = parts;
  const { config, logger, dataDirectory } = init;
  const reporter = new Reporter(parts, core);
  await transport.start(peerEvents(core, view, reporter));
  const { snapshotsLoaded } = store;
  logger.info(
    {
      http: self.http,
      peer: self.peer,
      resp: self.resp,
      grpc: self.grpc,
      partitions: core.partitions.size,
      snapshotsLoaded,
    },
    'node is up',
  );
  const space = new DiskSpaceWatch({
    directory: dataDirectory,
    floorBytes: settings.freeFloorBytes,
    logger,
    seen: (isLow) => core.setLowDisk(isLow),
  });
  const heap = new HeapWatch({ memoryInUse, logger, changed: (isShort) => core.shortOfHeap(isShort) });
  return new QuorateNode(parts, core, [
    setInterval(() => {
      core.tick();
      shedder.tick();
    }, config.timing.tickMillis),
    setInterval(() => reporter.report(), REPORT_MILLIS),
    setInterval(() => void space.check().catch(fatal), FREE_SPACE_CHECK_MILLIS),
    setInterval(() => heap.check(), HEAP_CHECK_MILLIS),
    setInterval(() => monitor.check(), FAULT_CHECK_MILLIS),
  ]);
}

function peerEvents({ peers }: NodeCore, view: ClusterView, reporter: Reporter): TransportHandlers {
  return {
    onFrame: (from, type, payload) => peers.receive(from, type, payload),
    onIntroduced: (hello) => peers.introduced(hello),
    onUnwelcome: (hello, refusal) => peers.unwelcome(hello, refusal),
    onPeerLost(peer) {
      peers.peerLost(peer);
      view.lost(peer);
    },
    onPeerConnected(peer) {
      peers.welcomedBy(peer);
      reporter.report();
    },
    onPeerDisconnected: (peer) => peers.peerDisconnected(peer),
    onRefused: (peer, refusal) => peers.refusedBy(peer, refusal),
  };
}

/** Reports the state of this node's groups to its peers, and updates the rules for usage counting. */
class Reporter {
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
    usage.usesRules(rules);
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
