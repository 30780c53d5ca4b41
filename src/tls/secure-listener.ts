/**
 * The TLS options of an API listener. Each new connection gets the certificate in force; clients need no certificate.
 */
import type { Server, TlsOptions } from 'node:tls';
import type { Logger } from 'pino';
import { type HandshakeLimits, Handshakes } from './handshakes.ts';
import type { LiveCredentials } from './live-credentials.ts';

/** Higher limits than for peers, because many clients may reconnect at once. */
const LIMITS: HandshakeLimits = { openMax: 1_024, millisMax: 10_000 };

/** The options to create a server with. */
export function listenerOptions({ current: { cert, key } }: LiveCredentials): TlsOptions {
  return { cert, key, minVersion: 'TLSv1.2' };
}

/** Makes `server` follow changes of the certificate, and bounds its handshakes. */
export function guardListener(server: Server, tls: LiveCredentials, logger: Logger): Handshakes {
  tls.onReplaced(() => server.setSecureContext(listenerOptions(tls)));
  return new Handshakes(server, {
    limits: LIMITS,
    failed: (reason, remoteAddress) =>
      logger.debug({ reason, remoteAddress }, 'a handshake of a client failed'),
  });
}
