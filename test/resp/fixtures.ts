/** Starts a RESP listener with a fake node, and a client that sends byte by byte. */
import { connect, type Socket } from 'node:net';
import { pino } from 'pino';
import type { ClusterReport } from '../../src/api/cluster-report.ts';
import type { AskAnswer, AskDone, Question } from '../../src/api/question.ts';
import type { RulesInForce } from '../../src/api/rules-change.ts';
import { RESP_LIMITS, type RespLimits } from '../../src/resp/resp-listener-init.ts';
import { RespListener } from '../../src/resp/resp-listener.ts';
import type { PeekAnswer, PeekQuestion, PeekRequest } from '../../src/api/peek.ts';
import type { RefundQuestion, RefundQuestionAnswer, RefundQuestionDone } from '../../src/api/refund.ts';
import type { DoneWith } from '../../src/api/user-request.ts';
import { PlayedAccess } from '../api/played-access.ts';
import { PlayedShedding } from '../api/played-shedding.ts';
import { decisionOf, limitStatusOf } from '../api/decision-of.ts';
import { eventually } from '../cluster/harness.ts';
import { type Decoded, decodeReplies } from './decode-replies.ts';

const UNREPORTED = { speaks: null, release: null };
/** Node 1 leads partitions 0 and 1, node 2 leads 2, and no node leads 3. Node 3 has no RESP listener. */
export const REPORT: ClusterReport = {
  self: { id: 1, membership: 'member', refusedBy: [] },
  nodes: [
    { id: 1, http: '127.0.0.1:8101', resp: '127.0.0.1:10101', pid: 1, up: true, clock: 'fit', ...UNREPORTED },
    { id: 2, http: '127.0.0.1:8102', resp: '127.0.0.1:10102', pid: 2, up: true, clock: 'fit', ...UNREPORTED },
    { id: 3, http: '127.0.0.1:8103', resp: null, pid: 3, up: true, clock: 'fit', ...UNREPORTED },
  ],
  version: 7,
  settledVersion: 7,
  rules: null,
  partitions: [1, 1, 2, 0].map((leader, id) => ({
    id,
    leader,
    term: 1,
    commit: 1,
    placed: true,
    replicas: [],
  })),
};

export class PlayedListener {
  readonly access = new PlayedAccess();
  readonly shedding = new PlayedShedding();
  refusedUnread = 0;
  readonly reported: { readonly request: unknown; readonly answer: unknown }[] = [];
  readonly asked: Question[] = [];
  readonly open: AskDone[] = [];
  /** Undefined keeps requests open. */
  answer: AskAnswer | undefined = { kind: 'decision', decision: decisionOf() };
  readonly peeks: PeekQuestion[] = [];
  readonly refunds: RefundQuestion[] = [];
  readonly openRefunds: RefundQuestionDone[] = [];
  /** Undefined keeps refunds open. */
  refunded: RefundQuestionAnswer | undefined = {
    kind: 'refund',
    kept: undefined,
    refund: {
      refunded: true,
      ruleId: 'default',
      cost: 2,
      decided: { term: 2, index: 7, position: 1, timeMillis: 90 },
      rulesVersion: 7,
    },
  };
  readonly openPeeks: DoneWith<PeekRequest>[] = [];
  /** Undefined keeps peeks open. */
  keyStatus: PeekAnswer | undefined = {
    kind: 'keyStatus',
    keyStatus: { limits: [limitStatusOf()], decided: { term: 2, index: 7, timeMillis: 90 }, rulesVersion: 7 },
  };
  rules: RulesInForce | undefined;
  wantsNoClients = false;
  report = REPORT;
  accepted = 0;
  readonly listener: RespListener;
  readonly #clients: RespClient[] = [];

  constructor(limits: Partial<RespLimits> = {}) {
    this.listener = new RespListener({
      node: {
        access: this.access,
        shedding: this.shedding,
        ask: (request, done) => {
          this.asked.push(request);
          if (this.answer === undefined) this.open.push(done);
          else done(this.answer, 0);
        },
        refusedUnread: (requests) => void (this.refusedUnread += requests),
        answered: (request, answer) => this.reported.push({ request, answer }),
        usage: (_query, done) => done({ ok: false, reason: 'starting' }),
        allowListed: (_request, done) => done({ kind: 'unavailable', reason: 'starting', proposed: false }),
        peek: (request, done) => {
          this.peeks.push(request);
          if (this.keyStatus === undefined) this.openPeeks.push(done);
          else done(this.keyStatus, 0);
        },
        refund: (request, done) => {
          this.refunds.push(request);
          if (this.refunded === undefined) this.openRefunds.push(done);
          else done(this.refunded, 0);
        },
        operate: (_request, done) => done({ kind: 'invalid', field: 'userId', message: '' }, 0),
        setUsed: (_question, done) => done({ kind: 'invalid', field: 'userId', message: '' }, 0),
        customer: (_customerId, _action, done) =>
          done({ kind: 'invalid', field: 'customer', message: '' }, 0),
        backup: (_group, done) => done({ ok: false, reason: 'starting' }),
        readiness: () => ({ status: 'ready' }),
        wantsNoClients: () => this.wantsNoClients,
        cluster: () => this.report,
        change: () => {},
        rules: () => this.rules,
        rule: () => undefined,
      },
      address: { host: '127.0.0.1', port: 0 },
      version: '1.2.3',
      atTurnEnd: setImmediate,
      accepted: () => {
        this.accepted += 1;
      },
      monotonicMillis: () => performance.now(),
      logger: pino({ level: 'silent' }),
      limits: { ...RESP_LIMITS, ...limits },
    });
  }

  static async listening(limits: Partial<RespLimits> = {}): Promise<PlayedListener> {
    const played = new PlayedListener(limits);
    await played.listener.listen();
    return played;
  }

  client(): RespClient {
    const client = new RespClient(this.listener.port);
    this.#clients.push(client);
    return client;
  }

  async stop(): Promise<void> {
    const closed = this.listener.close();
    for (const client of this.#clients) client.socket.destroy();
    this.listener.closeAllConnections();
    await closed;
  }
}

/** A command as clients send it. */
export function encodeCommand(...args: readonly (string | Buffer)[]): Buffer {
  const parts = args.flatMap((arg) => {
    const bytes = Buffer.from(arg);
    return [Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')];
  });
  return Buffer.concat([Buffer.from(`*${args.length}\r\n`), ...parts]);
}

/** Sends a command again while no node can decide. With an id it is charged once. */
export async function decided(ask: () => Promise<unknown>): Promise<unknown> {
  const { answer } = await eventually('it is decided', async () => {
    try {
      return { answer: await ask() };
    } catch (error) {
      if (String(error).includes('UNAVAILABLE')) return undefined;
      throw error;
    }
  });
  return answer;
}

/** A client that collects everything it receives. */
export class RespClient {
  readonly socket: Socket;
  hasEnded = false;
  isClosed = false;
  receivedBytes = 0;
  readonly #chunks: Buffer[] = [];
  #taken = 0;

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    this.socket.on('error', () => {});
    this.socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.receivedBytes += chunk.length;
    });
    this.socket.on('end', () => {
      this.hasEnded = true;
    });
    this.socket.on('close', () => {
      this.isClosed = true;
    });
  }

  get received(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  get replies(): Decoded[] {
    return decodeReplies(this.received);
  }

  send(...args: readonly (string | Buffer)[]): void {
    this.socket.write(encodeCommand(...args));
  }

  /** The next `count` answers. */
  async next(count: number): Promise<Decoded[]> {
    const replies = await eventually(`${count} more answers`, () =>
      this.replies.length >= this.#taken + count ? this.replies : undefined,
    );
    const next = replies.slice(this.#taken, this.#taken + count);
    this.#taken += count;
    return next;
  }

  async ask(...args: readonly (string | Buffer)[]): Promise<Decoded> {
    this.send(...args);
    const [reply] = await this.next(1);
    return reply ?? null;
  }

  async ended(): Promise<void> {
    await eventually('the connection has ended', () => (this.hasEnded || this.isClosed ? true : undefined));
  }
}
