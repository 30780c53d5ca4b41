/** Creates the listeners of a node. They do not listen yet. */
import type { NodeBehindDoor } from '../api/front-door.ts';
import type { HostPort } from '../api/node-address.ts';
import type { GrpcDoor } from '../grpc/grpc-door.ts';
import type { HttpDoorInit } from '../http/door-init.ts';
import { HttpDoor } from '../http/http-door.ts';
import { RespDoor } from '../resp/resp-door.ts';
import { Diagnostics } from './diagnostics.ts';
import type { DoorClock } from './door-clock.ts';
import type { EventTurn } from './event-turn.ts';
import type { LiveSettings } from './live-settings.ts';
import type { NodeMonitor } from './node-monitor.ts';
import type { Metrics } from './metrics.ts';
import type { Clocks } from './node-core-init.ts';
import type { NodeInit } from './node-init.ts';

/** The HTTP listener. */
export function httpDoor(
  { logger, tls }: NodeInit,
  where: Pick<HttpDoorInit, 'address' | 'advertisedHost'>,
  parts: Clocks & {
    readonly node: NodeBehindDoor;
    readonly monitor: NodeMonitor;
    readonly doorClock: DoorClock;
    readonly metrics: Metrics;
    readonly settings: LiveSettings;
  },
): HttpDoor {
  const { node, monitor, doorClock, metrics, settings, monotonicMillis, wallMillis } = parts;
  return new HttpDoor({
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
    accepted: () => doorClock.accepted(),
    monotonicMillis,
    wallMillis,
    logger,
    settings: settings.http,
    rls: settings.rls,
    ...(tls?.doors !== undefined && { tls: tls.doors }),
  });
}

/** The RESP listener; undefined if the configuration has no address for it. */
export function respDoor(
  { version = 'unknown', logger, tls }: NodeInit,
  address: HostPort | undefined,
  parts: Clocks & {
    readonly node: NodeBehindDoor;
    readonly doorClock: DoorClock;
    readonly turn: EventTurn;
  },
): RespDoor | undefined {
  if (address === undefined) return undefined;
  const { node, doorClock, turn, monotonicMillis } = parts;
  const accepted = (): void => doorClock.accepted();
  const atTurnEnd = (flush: () => void): void => turn.at('reply', flush);
  const secure = tls?.doors !== undefined && { tls: tls.doors };
  return new RespDoor({
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
export async function grpcDoor(
  { logger, tls }: NodeInit,
  address: HostPort | undefined,
  parts: Clocks & {
    readonly node: NodeBehindDoor;
    readonly doorClock: DoorClock;
    readonly settings: LiveSettings;
  },
): Promise<GrpcDoor | undefined> {
  if (address === undefined) return undefined;
  const { GrpcDoor } = await import('../grpc/grpc-door.ts');
  const { node, doorClock, settings, monotonicMillis } = parts;
  return new GrpcDoor({
    node,
    address,
    accepted: () => doorClock.accepted(),
    monotonicMillis,
    logger,
    settings: settings.rls,
    ...(tls?.doors !== undefined && { tls: tls.doors }),
  });
}
