/** What the HTTP door is made of: the node behind it, and what else its routes need. */
import type { Logger } from 'pino';
import type { DiagnosticsBehindDoor } from '../api/diagnostics.ts';
import type { NodeBehindDoor } from '../api/front-door.ts';
import type { MonitoringBehindDoor } from '../api/monitoring.ts';
import type { LiveCredentials } from '../tls/live-credentials.ts';
import type { RlsSettings } from '../rls/rls-settings.ts';
import type { HttpSettings } from '../config/http-settings.ts';

/** How long a client may take for what. */
export interface HttpLimits {
  /** For a whole request, from its first byte, and for its headers alone. */
  readonly requestMillis: number;
  /** Between two requests, where the settings do not say. The usual balancers keep a connection for 60 s, and must end it first. */
  readonly keepAliveMillis: number;
  /** How many there may be; one more is closed. */
  readonly connectionsMax: number;
  /** Of one address: it cannot shut out all others. */
  readonly connectionsPerAddressMax: number;
}

export const HTTP_LIMITS: HttpLimits = {
  requestMillis: 10_000,
  keepAliveMillis: 75_000,
  connectionsMax: 10_000,
  connectionsPerAddressMax: 5_000,
};

export interface HttpDoorInit {
  readonly node: NodeBehindDoor;
  readonly monitor: MonitoringBehindDoor;
  readonly diagnostics: DiagnosticsBehindDoor;
  /** Port 0 lets the system choose. */
  readonly address: { readonly host: string; readonly port: number };
  /** The name that clients know it by. Absent: the host of `address`. */
  readonly advertisedHost?: string;
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
  /** Told of every answer to a request for a grant, in a batch or alone. */
  readonly observe: (status: number, startedMillis: number) => void;
  /** Told of every connection. */
  readonly accepted: () => void;
  readonly monotonicMillis: () => number;
  readonly wallMillis: () => number;
  readonly logger: Logger;
  /** Asked for at every use: they change while the node runs. */
  readonly settings: () => HttpSettings;
  /** Absent: as `RLS_SETTINGS_DEFAULTS` says. */
  readonly rls?: () => RlsSettings;
  /** Absent: it speaks plainly. */
  readonly tls?: LiveCredentials;
  readonly limits?: HttpLimits;
}
