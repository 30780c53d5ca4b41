/** Monitoring of the cluster by this node, for people: the figures of the last seconds, and the last faults. */
import {
  type Fault,
  type MonitoringApi,
  type ClusterTimes,
  type LiveFigures,
  type LiveRates,
  PARTITIONS_PER_SECOND,
} from '../api/monitoring.ts';
import type { UsageReport } from '../api/usage.ts';
import { LatestTimes, sumOfCounts, timesOf } from '../usage/answer-times.ts';
import { LiveRate } from '../usage/live-rate.ts';
import type { ClusterView } from './cluster-view.ts';
import type { ListenerUsage } from './listener-usage.ts';
import { FaultLog } from './fault-log.ts';
import type { Clocks } from '../api/clocks.ts';
import type { NodeReadiness } from './readiness.ts';

/** The current minute and the one before, as that may not have been complete at the last reading. */
const MINUTES = 2;
/** Rates older than this are outdated. */
const RATES_MILLIS_MAX = 5_000;

/** The maximum number of seconds that the reports of nodes cover (`NodePace`). */
const TIMES_SECONDS = 10;

interface MonitorInit {
  readonly readiness: NodeReadiness;
  readonly view: ClusterView;
  readonly usage: ListenerUsage;
  readonly clocks: Clocks;
}

/** The monitoring API of one node. */
export class NodeMonitor implements MonitoringApi {
  readonly #init: MonitorInit;
  readonly #rate = new LiveRate();
  readonly #times = new LatestTimes();
  readonly #faults: FaultLog;
  #rates: { readonly of: LiveRates | null; readonly atMillis: number } | undefined;
  #isAsking = false;
  #untilCheck = 0;
  /** The start of a cluster is not a fault. */
  #wasReady = false;

  constructor(init: MonitorInit) {
    this.#init = init;
    this.#faults = new FaultLog(init.clocks.wallMillis);
  }

  /** Checks for faults; call it once a second. It starts when this node is ready for the first time. */
  check(): void {
    const { readiness, view } = this.#init;
    this.#wasReady ||= readiness.current.status === 'ready';
    this.#untilCheck -= 1;
    if (this.#untilCheck > 0 || !this.#wasReady) return;
    const report = view.report();
    this.#untilCheck = Math.ceil(report.partitions.length / PARTITIONS_PER_SECOND);
    this.#faults.check(report);
  }

  readonly faults = (): readonly Fault[] => this.#faults.faults;

  readonly figures = (): LiveFigures => {
    const { readiness, usage, clocks } = this.#init;
    const { core } = readiness;
    const now = clocks.monotonicMillis();
    const isRecent = this.#rates !== undefined && now - this.#rates.atMillis <= RATES_MILLIS_MAX;
    const rates = isRecent ? (this.#rates?.of ?? null) : null;
    this.#maybeAsk(now);
    return {
      atMillis: clocks.wallMillis(),
      readiness: readiness.current,
      rates,
      times: this.#times.seen(usage.times, now),
      clusterTimes: this.#clusterTimes(),
      openRequests: core?.router.openCount ?? 0,
      waitingProposals: core?.waitingCount ?? 0,
      stateBytes: core?.capacity.stateBytes ?? 0,
      stateBytesMax: core?.capacity.stateBytesMax ?? 0,
    };
  };

  #clusterTimes(): ClusterTimes | null {
    const byNode = this.#init.view.latestTimes();
    const times = timesOf(sumOfCounts([...byNode.values()]), TIMES_SECONDS);
    return times && { ...times, nodes: [...byNode.keys()].sort((a, b) => a - b) };
  }

  /** Asks all nodes for their usage, one question at a time: a silent node delays the answer by a second. */
  #maybeAsk(atMillis: number): void {
    const { core } = this.#init.readiness;
    if (core === undefined || this.#isAsking) return;
    this.#isAsking = true;
    core.usage.ask({ minutes: MINUTES, top: 0 }, (result) => {
      this.#isAsking = false;
      if (result.ok) this.#rates = { of: this.#ratesIn(result.report, atMillis), atMillis };
    });
  }

  #ratesIn(report: UsageReport, atMillis: number): LiveRates | null {
    const perSecond = this.#rate.seen(report, atMillis);
    const { nodes, silent } = report;
    return perSecond === undefined ? null : { perSecond, nodes, silent };
  }
}
