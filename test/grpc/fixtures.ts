/** Starts a gRPC listener with a fake node. */
import { pino } from 'pino';
import type { ListedAnswer, ListedDone, ListedRequest } from '../../src/api/listed.ts';
import type { Readiness } from '../../src/api/cluster-report.ts';
import { GRPC_LIMITS, type GrpcLimits } from '../../src/grpc/grpc-listener-init.ts';
import { GrpcListener } from '../../src/grpc/grpc-listener.ts';
import type { RlsSettings } from '../../src/rls/rls-settings.ts';
import { PlayedAccess } from '../api/played-access.ts';
import { PlayedShedding } from '../api/played-shedding.ts';
import { EnvoyClient } from './envoy-client.ts';

export const GRANTED: ListedAnswer = {
  kind: 'listed',
  allowed: true,
  lists: [
    {
      kind: 'limited',
      isOver: false,
      name: 'per_user',
      limitStatus: {
        ruleId: 'edge|user',
        limit: 10,
        windowMillis: 60_000,
        remaining: 4,
        retryAfterMillis: 0,
        resetMillis: 58_250,
      },
    },
  ],
  decided: { kind: 'unlimited', rulesVersion: 7 },
};

export const ASKED = { domain: 'edge', descriptors: [{ entries: [{ key: 'user', value: 'ada' }] }] };

export class PlayedGrpc {
  readonly access = new PlayedAccess();
  readonly shedding = new PlayedShedding();
  readonly asked: ListedRequest[] = [];
  readonly open: ListedDone[] = [];
  /** Undefined keeps requests open. */
  answer: ListedAnswer | undefined = GRANTED;
  readonly reported: unknown[] = [];
  refusedUnread = 0;
  readiness: Readiness = { status: 'ready' };
  wantsNoClients = false;
  accepted = 0;
  readonly listener: GrpcListener;
  readonly #clients: EnvoyClient[] = [];

  constructor(limits: Partial<GrpcLimits> = {}, settings: RlsSettings = { responseHeaders: false }) {
    this.listener = new GrpcListener({
      node: {
        access: this.access,
        shedding: this.shedding,
        allowListed: (request, done) => {
          this.asked.push(request);
          if (this.answer === undefined) this.open.push(done);
          else done(this.answer);
        },
        answered: (_request, answer) => this.reported.push(answer),
        refusedUnread: (requests) => void (this.refusedUnread += requests),
        readiness: () => this.readiness,
        wantsNoClients: () => this.wantsNoClients,
      },
      address: { host: '127.0.0.1', port: 0 },
      accepted: () => void (this.accepted += 1),
      monotonicMillis: () => performance.now(),
      logger: pino({ level: 'silent' }),
      settings: () => settings,
      limits: { ...GRPC_LIMITS, ...limits },
    });
  }

  static async open(limits: Partial<GrpcLimits> = {}, settings?: RlsSettings): Promise<PlayedGrpc> {
    const played = new PlayedGrpc(limits, settings);
    await played.listener.listen();
    return played;
  }

  client(): EnvoyClient {
    const client = new EnvoyClient(this.listener.port);
    this.#clients.push(client);
    return client;
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.close();
    const closed = this.listener.close();
    this.listener.closeAllConnections();
    await closed;
  }
}
