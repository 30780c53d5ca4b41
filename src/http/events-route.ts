/**
 * `GET /v1/events`: the state of the cluster once a second, as server-sent events: `cluster`, `figures`, and `faults`
 * when there are new ones. The stream ends when the node stops or is drained, or when the token of the request is
 * revoked.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { liveClusterOf, PARTITIONS_PER_SECOND } from '../api/monitoring.ts';
import { UNAVAILABLE_RETRY_SECONDS } from '../api/refusals.ts';
import { callerOf } from './callers.ts';
import type { HttpListenerInit } from './http-listener-init.ts';
import { EventStreams, LISTENERS_MAX } from './event-streams.ts';
import { type HttpAnswer, JSON_TYPE, sendAnswer } from './http-answer.ts';
import { forbidden } from './local-callers.ts';

/** The path of the route. */
export const EVENTS = '/v1/events';
/** The time after which a client reconnects, in milliseconds, unless it has its own rule. */
const RETRY_MILLIS = 2_000;
const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  // Some proxies would otherwise buffer events.
  'x-accel-buffering': 'no',
  connection: 'close',
};

function refused(reason: string, message: string): HttpAnswer {
  const headers = { 'content-type': JSON_TYPE, 'retry-after': String(UNAVAILABLE_RETRY_SECONDS) };
  return { status: 503, headers, body: { reason, message } };
}

const TOO_MANY = refused(
  'tooManyListeners',
  `${LISTENERS_MAX} clients read the events of this node, which is the maximum; ask another node`,
);
const LEAVING = refused(
  'leaving',
  'this node stops, is drained, or does not belong to the cluster; ask another node',
);

const FORBIDDEN = forbidden('events are not sent to pages of other sites');

/**
 * True if a page of another site asks. It could not read the events, and would take the place of clients that can.
 */
function isForOtherSite({ headers }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site'];
  return site !== undefined && site !== 'same-origin' && site !== 'none';
}

function eventOf(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Builds the next events: figures every time, and the cluster as often as its size allows. */
class NextEvents {
  readonly #init: Pick<HttpListenerInit, 'node' | 'monitor'>;
  #untilCluster = 0;
  #sentFault = 0;

  constructor(init: Pick<HttpListenerInit, 'node' | 'monitor'>) {
    this.#init = init;
  }

  /** All events, for a new stream. */
  first(): string {
    const { monitor } = this.#init;
    const figures = eventOf('figures', monitor.figures());
    return `retry: ${RETRY_MILLIS}\n\n${this.#cluster()}${figures}${eventOf('faults', monitor.faults())}`;
  }

  next(): string {
    const { monitor } = this.#init;
    const figures = eventOf('figures', monitor.figures());
    return `${this.#maybeCluster()}${figures}${this.#maybeFaults()}`;
  }

  #maybeCluster(): string {
    this.#untilCluster -= 1;
    return this.#untilCluster > 0 ? '' : this.#cluster();
  }

  /** A node that is starting knows nothing of the cluster yet. */
  #cluster(): string {
    const { node } = this.#init;
    if (node.readiness().status === 'starting') return '';
    const report = node.cluster();
    this.#untilCluster = Math.ceil(report.partitions.length / PARTITIONS_PER_SECOND);
    return eventOf('cluster', liveClusterOf(report));
  }

  #maybeFaults(): string {
    const faults = this.#init.monitor.faults();
    const latest = faults[0]?.id ?? 0;
    if (latest === this.#sentFault) return '';
    this.#sentFault = latest;
    return eventOf('faults', faults);
  }
}

/** Adds the route. */
export function addEventsRoute(app: FastifyInstance, init: HttpListenerInit): void {
  const { node } = init;
  const events = new NextEvents(init);
  const streams = new EventStreams({ next: () => events.next(), isOver: () => node.wantsNoClients() });
  // The streams would never end by themselves, and the listener waits for its connections when it closes.
  app.addHook('preClose', (done) => {
    streams.end();
    done();
  });
  const mayListen = (request: FastifyRequest): (() => boolean) => {
    const id = callerOf(request)?.id;
    return () =>
      id === undefined ? node.access.mode() === 'open' : node.access.callerById(id) !== undefined;
  };
  app.get(EVENTS, { exposeHeadRoute: false }, (request, reply) => {
    if (isForOtherSite(request)) sendAnswer(reply, FORBIDDEN);
    else if (node.wantsNoClients()) sendAnswer(reply, LEAVING);
    else if (streams.isFull) sendAnswer(reply, TOO_MANY);
    else {
      reply.hijack();
      reply.raw.writeHead(200, HEADERS);
      streams.add({ response: reply.raw, mayListen: mayListen(request) }, events.first());
    }
    return reply;
  });
}
