/** Starts a gRPC listener with a fake node. */
import { pino } from 'pino';
import type { ListedAnswer, ListedDone, ListedRequest } from '../../src/api/listed.ts';
import type { Readiness } from '../../src/api/readiness.ts';
import { GRPC_LIMITS, type GrpcLimits } from '../../src/grpc/door-init.ts';
import { GrpcDoor } from '../../src/grpc/grpc-door.ts';
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
      standing: {
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
  readonly told: unknown[] = [];
  refusedUnread = 0;
  readiness: Readiness = { status: 'ready' };
  wantsNoClients = false;
  accepted = 0;
  readonly door: GrpcDoor;
  readonly #clients: EnvoyClient[] = [];

  constructor(limits: Partial<GrpcLimits> = {}, settings: RlsSettings = { responseHeaders: false }) {
    this.door = new GrpcDoor({
      node: {
        access: this.access,
        shedding: this.shedding,
        allowListed: (request, done) => {
          this.asked.push(request);
          if (this.answer === undefined) this.open.push(done);
          else done(this.answer);
        },
        answered: (_request, answer) => this.told.push(answer),
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
    await played.door.listen();
    return played;
  }

  client(): EnvoyClient {
    const client = new EnvoyClient(this.door.port);
    this.#clients.push(client);
    return client;
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.close();
    const closed = this.door.close();
    this.door.closeAllConnections();
    await closed;
  }
}
