/** Creates the listeners of a node. They do not listen yet. */
import type { NodeApi } from '../api/api-listener.ts';
import type { HostPort } from '../api/node-address.ts';
import type { GrpcListener } from '../grpc/grpc-listener.ts';
import type { HttpListenerInit } from '../http/http-listener-init.ts';
import { HttpListener } from '../http/http-listener.ts';
import { RespListener } from '../resp/resp-listener.ts';
import { Diagnostics } from './diagnostics.ts';
import type { ListenerClock } from './listener-clock.ts';
import type { EventTurn } from './event-turn.ts';
import type { LiveSettings } from './live-settings.ts';
import type { NodeMonitor } from './node-monitor.ts';
import type { Metrics } from './metrics.ts';
import type { Clocks } from '../api/clocks.ts';
import type { Logger } from 'pino';
import type { NodeTls } from '../tls/node-tls.ts';

/** The arguments of the node that every listener takes. */
interface ListenerInit {
  readonly logger: Logger;
  /** Absent: connections are not encrypted. */
  readonly tls?: NodeTls;
}

/** The HTTP listener. */
export function httpListener(
  { logger, tls }: ListenerInit,
  where: Pick<HttpListenerInit, 'address' | 'advertisedHost'>,
  parts: Clocks & {
    readonly node: NodeApi;
    readonly monitor: NodeMonitor;
    readonly listenerClock: ListenerClock;
    readonly metrics: Metrics;
    readonly settings: LiveSettings;
  },
): HttpListener {
  const { node, monitor, listenerClock, metrics, settings, monotonicMillis, wallMillis } = parts;
  return new HttpListener({
    node,
    monitor,
    diagnostics: new Diagnostics({
      logger,
      monotonicMillis,
      isStopping: () => node.readiness().status === 'stopping',
    }),
    ...where,
    metrics: () => metrics.render(),
    observe: (status, startedMillis) =>
      metrics.observeRequest(status, (monotonicMillis() - startedMillis) / 1000),
    accepted: () => listenerClock.accepted(),
    monotonicMillis,
    wallMillis,
    logger,
    settings: settings.http,
    rls: settings.rls,
    ...(tls?.listeners !== undefined && { tls: tls.listeners }),
  });
}

/** The RESP listener; undefined if the configuration has no address for it. */
export function respListener(
  { version = 'unknown', logger, tls }: ListenerInit & { readonly version?: string },
  address: HostPort | undefined,
  parts: Clocks & {
    readonly node: NodeApi;
    readonly listenerClock: ListenerClock;
    readonly turn: EventTurn;
  },
): RespListener | undefined {
  if (address === undefined) return undefined;
  const { node, listenerClock, turn, monotonicMillis } = parts;
  const accepted = (): void => listenerClock.accepted();
  const atTurnEnd = (flush: () => void): void => turn.at('reply', flush);
  const secure = tls?.listeners !== undefined && { tls: tls.listeners };
  return new RespListener({
    node,
    address,
    version,
    accepted,
    monotonicMillis,
    atTurnEnd,
    logger,
    ...secure,
  });
}

/** The gRPC listener; undefined if the configuration has no address for it. Only then its library is loaded. */
export async function grpcListener(
  { logger, tls }: ListenerInit,
  address: HostPort | undefined,
  parts: Clocks & {
    readonly node: NodeApi;
    readonly listenerClock: ListenerClock;
    readonly settings: LiveSettings;
  },
): Promise<GrpcListener | undefined> {
  if (address === undefined) return undefined;
  const { GrpcListener } = await import('../grpc/grpc-listener.ts');
  const { node, listenerClock, settings, monotonicMillis } = parts;
  return new GrpcListener({
    node,
    address,
    accepted: () => listenerClock.accepted(),
    monotonicMillis,
    logger,
    settings: settings.rls,
    ...(tls?.listeners !== undefined && { tls: tls.listeners }),
  });
}
