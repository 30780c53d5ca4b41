/**
 * `GET /v1/events`: how the cluster is, once a second, as server-sent events: `cluster`, `figures`, and `faults` when there are new
 * ones. It ends when the node stops or is drained, and when the token it was asked with is revoked.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { liveClusterOf, PARTITIONS_PER_SECOND } from '../api/monitoring.ts';
import { UNAVAILABLE_RETRY_SECONDS } from '../api/refusals.ts';
import { callerOf } from './callers.ts';
import type { HttpDoorInit } from './door-init.ts';
import { EventStreams, LISTENERS_MAX } from './event-streams.ts';
import { type HttpAnswer, JSON_TYPE, sendAnswer } from './http-answer.ts';
import { forbidden } from './local-callers.ts';

export const EVENTS = '/v1/events';
/** After which a client comes again, if its own ways say nothing else. */
const RETRY_MILLIS = 2_000;
const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  // Some proxies would keep events until there are many.
  'x-accel-buffering': 'no',
  connection: 'close',
};

function refused(reason: string, message: string): HttpAnswer {
  const headers = { 'content-type': JSON_TYPE, 'retry-after': String(UNAVAILABLE_RETRY_SECONDS) };
  return { status: 503, headers, body: { reason, message } };
}

const TOO_MANY = refused(
  'tooManyListeners',
  `${LISTENERS_MAX} clients listen to this node already, as many as may; ask another node`,
);
const LEAVING = refused('leaving', 'this node stops, is drained or belongs to no cluster; ask another node');

const FORBIDDEN = forbidden('events are told to no page of another site');

/** A page of somebody else's cannot read what it is told, and would take the places of those who can. */
function isForOtherSite({ headers }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site'];
  return site !== undefined && site !== 'same-origin' && site !== 'none';
}

function eventOf(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** What is told next: the cluster as often as its size allows, figures always. */
class NextEvents {
  readonly #init: Pick<HttpDoorInit, 'node' | 'monitor'>;
  #untilCluster = 0;
  #toldFault = 0;

  constructor(init: Pick<HttpDoorInit, 'node' | 'monitor'>) {
    this.#init = init;
  }

  /** Everything there is to tell, for one that begins. */
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

  /** A node that starts knows nothing of the cluster. */
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
    if (latest === this.#toldFault) return '';
    this.#toldFault = latest;
    return eventOf('faults', faults);
  }
}

export function addEventsRoute(app: FastifyInstance, init: HttpDoorInit): void {
  const { node } = init;
  const events = new NextEvents(init);
  const streams = new EventStreams({ next: () => events.next(), isOver: () => node.wantsNoClients() });
  // Nobody else would end them, and the door waits for its connections.
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
