/** The gRPC listener as its node uses it: opened, counted and closed. The other files handle the calls. */
import { createServer, type Server as NetServer, type Socket } from 'node:net';
import { createServer as createSecureServer } from 'node:tls';
import {
  type ConnectionInjector,
  Server,
  ServerCredentials,
  ServerInterceptingCall,
  type ServerInterceptor,
} from '@grpc/grpc-js';
import type { ApiListener } from '../api/api-listener.ts';
import { guardListener, type Handshakes, listenerOptions } from '../tls/handshakes.ts';
import { CallGuard, clientOf } from './call-guard.ts';
import { Connections } from './connections.ts';
import {
  GRPC_LIMITS,
  type GrpcAnswers,
  type GrpcListenerInit,
  type GrpcLimits,
} from './grpc-listener-init.ts';
import { encodeHealth, Health, HEALTH_CHECK, HEALTH_WATCH } from './health.ts';
import { encodeResponse } from './rate-limit-messages.ts';
import { encodeReflection, REFLECTION_VERSIONS, reflect, reflectionPath } from './reflection.ts';
import { Sessions, standBefore } from './sessions.ts';
import { SHOULD_RATE_LIMIT, shouldRateLimit } from './should-rate-limit.ts';

/** How often time limits and health watches are checked, in milliseconds. */
const CHECK_MILLIS = 500;
/** HTTP/2 keep-alive: a client that disappears without closing its connection is detected after about this time. */
const KEEP_ALIVE_MILLIS = 60_000;
/** The memory limit of one connection, in megabytes, as the library expects it. The same as Node's default. */
const SESSION_MEGABYTES = 10;

const asIs = (bytes: Buffer): Buffer => bytes;

/** The gRPC listener of a node. */
export class GrpcListener implements ApiListener {
  /** The counters since the listener was created. They keep counting. */
  readonly answers: GrpcAnswers = { granted: 0, denied: 0, invalid: 0, unavailable: 0 };
  readonly #init: GrpcListenerInit;
  readonly #listener: NetServer;
  /** Only with TLS. */
  readonly #handshakes: Handshakes | undefined;
  readonly #server: Server;
  /** Passes connections that are already counted to the library. */
  readonly #injector: ConnectionInjector;
  readonly #connections: Connections;
  readonly #health: Health;
  readonly #checks: NodeJS.Timeout;
  #closed: Promise<void> | undefined;

  constructor(init: GrpcListenerInit) {
    const { node, monotonicMillis, tls, logger, limits = GRPC_LIMITS } = init;
    this.#init = init;
    this.#connections = new Connections(limits);
    const { answers } = this;
    const connections = this.#connections;
    const sessions = new Sessions(init, limits);
    const guard = new CallGuard({ node, monotonicMillis, limits, answers, connections, sessions });
    this.#health = new Health({ node, limits, clientOf });
    this.#server = serverOf(limits);
    this.#addMethods();
    this.#injector = this.#server.createConnectionInjector(ServerCredentials.createInsecure());
    standBefore(this.#server, (stream, headers) => guard.maybePass(stream, headers));
    const accepted = (socket: Socket): void => this.#accepted(socket);
    if (tls === undefined) this.#listener = createServer({ noDelay: true }, accepted);
    else {
      const server = createSecureServer(
        { noDelay: true, ALPNProtocols: ['h2'], ...listenerOptions(tls) },
        accepted,
      );
      this.#handshakes = guardListener(server, tls, logger);
      this.#listener = server;
    }
    this.#checks = setInterval(() => {
      guard.check();
      sessions.check();
      connections.check(monotonicMillis());
      this.#health.sendChanges();
    }, CHECK_MILLIS);
    this.#checks.unref();
  }

  /** The port it listens on; 0 while it does not listen. */
  get port(): number {
    const address = this.#listener.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  /** @throws the system's error if the address cannot be used */
  listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#listener.once('error', reject);
      this.#listener.listen(this.#init.address, () => {
        this.#listener.off('error', reject);
        resolve();
      });
    });
  }

  close(): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      this.#health.close();
      // The callback gets an error if it was not listening, for example because the address was in use. That is fine
      // here.
      this.#listener.close(() => {
        clearInterval(this.#checks);
        resolve();
      });
      // Connections in a TLS handshake have no request yet.
      this.#handshakes?.close();
      // The server accepts no new calls and sends GOAWAY to its clients. It still answers open calls.
      this.#server.tryShutdown(() => {});
    });
    return this.#closed;
  }

  closeAllConnections(): void {
    this.#handshakes?.close();
    this.#connections.closeAll();
  }

  async connectionCount(): Promise<number> {
    return this.#connections.count;
  }

  #accepted(socket: Socket): void {
    this.#init.accepted();
    if (this.#connections.maybeEnter(socket)) this.#injector.injectConnection(socket);
  }

  #addMethods(): void {
    const { node, monotonicMillis, settings } = this.#init;
    const rateLimit = shouldRateLimit({
      node,
      monotonicMillis,
      settings,
      answers: this.answers,
      clientOf,
    });
    this.#server.register(SHOULD_RATE_LIMIT, rateLimit, encodeResponse, asIs, 'unary');
    this.#server.register(HEALTH_CHECK, this.#health.check, encodeHealth, asIs, 'unary');
    this.#server.register(HEALTH_WATCH, this.#health.watch, encodeHealth, asIs, 'serverStream');
    const reflection = reflect();
    for (const version of REFLECTION_VERSIONS)
      this.#server.register(reflectionPath(version), reflection, encodeReflection, asIs, 'bidi');
  }
}

/** Without this, the library would announce that it accepts compressed requests. */
const NEVER_INFLATES: ServerInterceptor = (_method, call) =>
  new ServerInterceptingCall(call, {
    sendMetadata(metadata, next) {
      metadata.set('grpc-accept-encoding', 'identity');
      next(metadata);
    },
  });

function serverOf(limits: GrpcLimits): Server {
  return new Server({
    interceptors: [NEVER_INFLATES],
    'grpc.max_receive_message_length': limits.messageBytesMax,
    'grpc.max_concurrent_streams': limits.callsPerConnectionMax,
    'grpc.max_connection_idle_ms': limits.idleMillis,
    'grpc.keepalive_time_ms': KEEP_ALIVE_MILLIS,
    'grpc-node.max_session_memory': SESSION_MEGABYTES,
    // Otherwise the library would keep a trace of every connection.
    'grpc.enable_channelz': 0,
  });
}
