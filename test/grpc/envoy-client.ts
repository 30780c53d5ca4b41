/**
 * A client of Envoy's rate limit service and of the health service, built from the protocol files that Envoy
 * publishes.
 */
import {
  type CallOptions,
  type ChannelCredentials,
  Client,
  credentials,
  loadPackageDefinition,
  Metadata,
  type ServiceClientConstructor,
  type ServiceError,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { PROTO_ROOTS } from './published.ts';

interface Published {
  readonly envoy: {
    readonly service: { readonly ratelimit: { readonly v3: { RateLimitService: ServiceClientConstructor } } };
  };
}

const { envoy } = loadPackageDefinition(
  loadSync('envoy/service/ratelimit/v3/rls.proto', {
    includeDirs: PROTO_ROOTS,
    longs: Number,
    enums: String,
    defaults: true,
  }),
) as unknown as Published;

export interface Asked {
  readonly domain?: string;
  readonly descriptors?: readonly {
    readonly entries?: readonly { readonly key: string; readonly value?: string }[];
    readonly limit?: { readonly requestsPerUnit: number; readonly unit: string };
  }[];
  readonly hitsAddend?: number;
}

export interface Status {
  readonly code: string;
  readonly currentLimit: {
    readonly requestsPerUnit: number;
    readonly unit: string;
    readonly name: string;
  } | null;
  readonly limitRemaining: number;
  readonly durationUntilReset: { readonly seconds: number; readonly nanos: number } | null;
}

/** A response, or the code and the message of an error. */
export interface Answered {
  readonly overallCode?: string;
  readonly statuses?: readonly Status[];
  readonly responseHeadersToAdd?: readonly { readonly key: string; readonly value: string }[];
  readonly code?: number;
  readonly details?: string;
}

type Call = (
  request: Asked,
  metadata: Metadata,
  options: CallOptions,
  done: (error: ServiceError | null, response?: Answered) => void,
) => void;

export interface AskOptions {
  readonly token?: string;
  readonly deadlineMillis?: number;
}

/** A call that has not ended after this time will never end. */
const PATIENCE_MILLIS = 120_000;

/** Sends and receives bytes without encoding. */
export const asIs = (bytes: Buffer): Buffer => bytes;

export class EnvoyClient {
  readonly #client: Client;

  constructor(port: number, channel: ChannelCredentials = credentials.createInsecure()) {
    this.#client = new envoy.service.ratelimit.v3.RateLimitService(`127.0.0.1:${port}`, channel, {
      // Each client has its own connections.
      'grpc.use_local_subchannel_pool': 1,
      'grpc.enable_retries': 0,
      'grpc.initial_reconnect_backoff_ms': 50,
      'grpc.max_reconnect_backoff_ms': 50,
    });
  }

  /** One attempt, without retries. */
  ask(request: Asked, { token, deadlineMillis = PATIENCE_MILLIS }: AskOptions = {}): Promise<Answered> {
    const metadata = metadataOf(token);
    const call = (this.#client as unknown as { readonly ShouldRateLimit: Call }).ShouldRateLimit;
    return new Promise((resolve) => {
      call.call(
        this.#client,
        request,
        metadata,
        { deadline: Date.now() + deadlineMillis },
        (error, response) =>
          resolve(error === null ? (response ?? {}) : { code: error.code, details: error.details }),
      );
    });
  }

  /** Calls any method, by its path and bytes. */
  bytes(
    path: string,
    request: Buffer,
    token?: string,
  ): Promise<{ code?: number; details?: string; bytes?: Buffer }> {
    return new Promise((resolve) => {
      this.#client.makeUnaryRequest(path, asIs, asIs, request, metadataOf(token), (error, bytes) =>
        resolve(
          error === null
            ? { ...(bytes !== undefined && { bytes }) }
            : { code: error.code, details: error.details },
        ),
      );
    });
  }

  /** The client itself, for other kinds of calls. */
  get raw(): Client {
    return this.#client;
  }

  close(): void {
    this.#client.close();
  }
}

export function metadataOf(token: string | undefined): Metadata {
  const metadata = new Metadata();
  if (token !== undefined) metadata.set('authorization', `Bearer ${token}`);
  return metadata;
}

export function entriesOf(named: Readonly<Record<string, string>>): {
  readonly entries: { key: string; value: string }[];
} {
  return { entries: Object.entries(named).map(([key, value]) => ({ key, value })) };
}
