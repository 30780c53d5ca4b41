/** The parts that the HTTP listener is built from: its node, its settings, and its limits. */
import type { Logger } from 'pino';
import type { Clocks } from '../api/clocks.ts';
import type { DiagnosticsApi, NodeApi } from '../api/api-listener.ts';
import type { MonitoringApi } from '../api/monitoring.ts';
import type { LiveCredentials } from '../tls/live-credentials.ts';
import type { RlsSettings } from '../rls/rls-settings.ts';
import type { HttpSettings } from '../config/http-settings.ts';

/** Time limits and connection limits of the HTTP listener. */
export interface HttpLimits {
  /** The time for a whole request from its first byte, and also for its headers alone. */
  readonly requestMillis: number;
  /**
   * The idle time between two requests, unless the settings have one. Common load balancers keep a connection for 60
   * s, and they must be the ones to close it.
   */
  readonly keepAliveMillis: number;
  /** The most connections; one more is closed. */
  readonly connectionsMax: number;
  /** The most connections from one address, so that one client cannot shut out all others. */
  readonly connectionsPerAddressMax: number;
}

/** The defaults. */
export const HTTP_LIMITS: HttpLimits = {
  requestMillis: 10_000,
  keepAliveMillis: 75_000,
  connectionsMax: 10_000,
  connectionsPerAddressMax: 5_000,
};

/** The parts that the HTTP listener is built from. */
export interface HttpListenerInit extends Clocks {
  readonly node: NodeApi;
  readonly monitor: MonitoringApi;
  readonly diagnostics: DiagnosticsApi;
  /** Port 0 lets the system choose. */
  readonly address: { readonly host: string; readonly port: number };
  /** The name that clients use for it. Absent: the host of `address`. */
  readonly advertisedHost?: string;
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
  /** Called for every answer to a request for a grant, also for each in a batch. */
  readonly observe: (status: number, startedMillis: number) => void;
  /** Called for every connection. */
  readonly accepted: () => void;
  readonly logger: Logger;
  /** Read at every use, because the settings may change while the node runs. */
  readonly settings: () => HttpSettings;
  /** Absent: `RLS_SETTINGS_DEFAULTS`. */
  readonly rls?: () => RlsSettings;
  /** Absent: no TLS. */
  readonly tls?: LiveCredentials;
  readonly limits?: HttpLimits;
}
