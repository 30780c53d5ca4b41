/** The server of a door that speaks TLS: with the certificate that is in force, for each connection that begins. Clients show none. */
import type { Server, TlsOptions } from 'node:tls';
import type { Logger } from 'pino';
import { type HandshakeLimits, Handshakes } from './handshakes.ts';
import type { LiveCredentials } from './live-credentials.ts';

/** Many clients may come back at once. */
const LIMITS: HandshakeLimits = { openMax: 1_024, millisMax: 10_000 };

/** What a server is made with. */
export function doorOptions({ current: { cert, key } }: LiveCredentials): TlsOptions {
  return { cert, key, minVersion: 'TLSv1.2' };
}

/** From now on `server` follows the certificate, and its handshakes are bounded. */
export function guardDoor(server: Server, tls: LiveCredentials, logger: Logger): Handshakes {
  tls.onReplaced(() => server.setSecureContext(doorOptions(tls)));
  return new Handshakes(server, {
    limits: LIMITS,
    failed: (reason, remoteAddress) =>
      logger.debug({ reason, remoteAddress }, 'a handshake of a client failed'),
  });
}
