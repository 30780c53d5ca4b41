/** The Prometheus metrics of one node. No label contains a user id. */
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import type { ReservationCounts } from '../matching/reservations.ts';
import type { SheddingReport } from '../shedding/load-shedder.ts';
import type { ListenerUsage } from './listener-usage.ts';
import { OperationMetrics, type OperationSources } from './operation-metrics.ts';
import { addUsageMetrics } from './usage-metrics.ts';

const LATENCY_BUCKETS_SECONDS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];

/** Where the values are read when Prometheus asks. */
export interface MetricSources {
  readonly leaderships: () => number;
  readonly openRequests: () => number;
  readonly waitingProposals: () => number;
  readonly stateBytes: () => number;
  readonly stateBytesMax: () => number;
  /** Since the node started. */
  readonly refusedAtCapacity: () => number;
  /** Reservations for requests with limits in several partitions, since the node started. */
  readonly reservations: () => Readonly<ReservationCounts>;
  /** The largest `Partition.restoredMillis` on this node. */
  readonly restoredMillis: () => number;
  readonly isClockUnfit: () => boolean;
  /** Answers of the RESP listener, by kind. */
  readonly respAnswers: () => Iterable<readonly [string, number]>;
  /** Answers of the gRPC listener, by kind. */
  readonly grpcAnswers: () => Iterable<readonly [string, number]>;
  /** By peer. */
  readonly clockRatesPpm: () => Iterable<readonly [number, number]>;
  readonly usage: ListenerUsage;
  readonly operation: OperationSources;
  readonly shedding: () => SheddingReport;
  /** Requests with a wrong token since the node started, by listener. */
  readonly authFailures: () => Iterable<readonly [string, number]>;
}

/** The metrics of one node. */
export class Metrics {
  /** Metrics that are fed by events. */
  readonly operation: OperationMetrics;
  readonly #registry = new Registry();
  readonly #requests: Counter;
  readonly #requestSeconds: Histogram;
  readonly #writeSeconds: Histogram;

  constructor(sources: MetricSources) {
    const registers = [this.#registry];
    collectDefaultMetrics({ register: this.#registry });
    this.#requests = new Counter({
      name: 'quorate_http_requests_total',
      help: 'Answers of POST /v1/allow and /json by status: 200 allowed, 429 denied, 503 unavailable, 4xx bad input.',
      labelNames: ['status'],
      registers,
    });
    this.#requestSeconds = new Histogram({
      name: 'quorate_http_request_seconds',
      help: 'Time from reading a request to answering it.',
      labelNames: ['status'],
      buckets: LATENCY_BUCKETS_SECONDS,
      registers,
    });
    this.#writeSeconds = new Histogram({
      name: 'quorate_disk_write_seconds',
      help: 'Time of one synced write of all groups.',
      buckets: LATENCY_BUCKETS_SECONDS,
      registers,
    });
    gauge(
      'quorate_leaderships',
      'Groups that this node leads: its partitions, and group 0 (nodes, rules, tokens) if it leads that, too.',
      sources.leaderships,
      registers,
    );
    gauge('quorate_open_requests', 'Requests without an answer yet.', sources.openRequests, registers);
    gauge('quorate_waiting_proposals', 'Requests not applied yet.', sources.waitingProposals, registers);
    gauge('quorate_state_bytes', 'Bytes of state of all partitions here.', sources.stateBytes, registers);
    gauge('quorate_state_bytes_max', 'Above this new users are refused.', sources.stateBytesMax, registers);
    const refused = 'quorate_refused_at_capacity_total';
    counter(
      refused,
      'Requests refused because this node or another replica is at capacity.',
      sources.refusedAtCapacity,
      registers,
    );
    addReservations(sources, registers);
    addAnswers(sources, registers);
    gauge(
      'quorate_restored_seconds',
      'Longest time for which a partition here still denies everybody, because the cluster was restored or recovered.',
      () => sources.restoredMillis() / 1_000,
      registers,
    );
    gauge(
      'quorate_clock_unfit',
      '1 while the clock of this node differs too much from those of a majority: it leads nothing then.',
      () => (sources.isClockUnfit() ? 1 : 0),
      registers,
    );
    const rates: Gauge = new Gauge({
      name: 'quorate_clock_rate_ppm',
      help: 'How much faster the clock of this node ran than that of a peer, over the last minute.',
      labelNames: ['peer'],
      registers,
      collect() {
        rates.reset();
        for (const [peer, ppm] of sources.clockRatesPpm()) rates.set({ peer }, ppm);
      },
    });
    addAuthFailures(sources, registers);
    addShedding(sources, registers);
    addUsageMetrics(sources.usage, this.#registry);
    this.operation = new OperationMetrics(sources.operation, this.#registry);
  }

  /** Records an answer of the HTTP listener. */
  observeRequest(status: number, seconds: number): void {
    const label = String(status);
    this.#requests.inc({ status: label });
    this.#requestSeconds.observe({ status: label }, seconds);
  }

  /** Records a synced write. */
  observeWrite(seconds: number): void {
    this.#writeSeconds.observe(seconds);
  }

  /** All metrics in the text format of Prometheus. */
  async render(): Promise<{ readonly contentType: string; readonly text: string }> {
    return { contentType: this.#registry.contentType, text: await this.#registry.metrics() };
  }
}

function gauge(name: string, help: string, read: () => number, registers: Registry[]): void {
  const metric: Gauge = new Gauge({ name, help, registers, collect: () => metric.set(read()) });
}

/** A counter whose value is read from a number that only grows. */
function counter(name: string, help: string, read: () => number, registers: Registry[]): void {
  let last = 0;
  const metric: Counter = new Counter({
    name,
    help,
    registers,
    collect() {
      const now = read();
      metric.inc(now - last);
      last = now;
    },
  });
}

function addAuthFailures({ authFailures }: MetricSources, registers: Registry[]): void {
  const failures: Counter = new Counter({
    name: 'quorate_auth_failures_total',
    help: 'Requests with a token that is wrong or was revoked, by listener.',
    labelNames: ['listener'],
    registers,
    collect() {
      failures.reset();
      for (const [listener, count] of authFailures()) failures.inc({ listener }, count);
    },
  });
}

function addShedding({ shedding }: MetricSources, registers: Registry[]): void {
  const limit = 'Most requests that may be open here at a time. Below 65536 the node sheds load.';
  gauge('quorate_open_requests_max', limit, () => shedding().limit, registers);
  const round =
    'Processor time of the shortest round of the event loop in the last tenth of a second: above 0.012 requests queue.';
  gauge('quorate_loop_round_seconds', round, () => shedding().roundMillis / 1_000, registers);
  const shed = 'Requests refused unread, because this node had more to do than it could.';
  counter('quorate_shed_requests_total', shed, () => shedding().refused, registers);
}

/** Answers of the listeners that have no HTTP statuses. */
function addAnswers({ respAnswers, grpcAnswers }: MetricSources, registers: Registry[]): void {
  for (const [name, asked, answersOf] of [
    ['quorate_resp_answers_total', 'ALLOW and CL.THROTTLE', respAnswers],
    ['quorate_grpc_answers_total', 'ShouldRateLimit', grpcAnswers],
  ] as const) {
    const answers: Counter = new Counter({
      name,
      help: `Answers to ${asked}: granted, denied, unavailable, or refused by the deciding node.`,
      labelNames: ['answer'],
      registers,
      collect() {
        answers.reset();
        for (const [answer, count] of answersOf()) answers.inc({ answer }, count);
      },
    });
  }
}

function addReservations({ reservations }: MetricSources, registers: Registry[]): void {
  const released = 'Reservations given back, because another limit denied the request.';
  counter('quorate_reservations_released_total', released, () => reservations().released, registers);
  const left = 'Reservations that could not be given back: they may stay charged until their window ends.';
  counter('quorate_reservations_left_total', left, () => reservations().left, registers);
}
