/** Builds an HTTP listener with a fake node and clocks that do not run. */
import { Readable } from 'node:stream';
import type { AskAnswer, AskDone, Question } from '../../src/api/question.ts';
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import type { Decision } from '../../src/api/answer.ts';
import type { BackupStarted } from '../../src/api/backup.ts';
import type {
  CustomerAction,
  CustomerAnswer,
  CustomerRequest,
  UsedQuestion,
} from '../../src/api/customer.ts';
import type { ClusterReport, Readiness } from '../../src/api/cluster-report.ts';
import type { DiagnosticsApi, NodeApi } from '../../src/api/api-listener.ts';
import type { Fault, LiveFigures } from '../../src/api/monitoring.ts';
import type { ChangeMade, ChangeResult, ClusterChange } from '../../src/api/cluster-change.ts';
import type { RulesInForce } from '../../src/api/rules-change.ts';
import type { ListedAnswer, ListedRequest } from '../../src/api/listed.ts';
import type { PeekAnswer, PeekQuestion } from '../../src/api/peek.ts';
import type { RefundQuestion, RefundQuestionAnswer } from '../../src/api/refund.ts';
import type { UsageQuery, UsageResult } from '../../src/api/usage.ts';
import { PlayedAccess } from '../api/played-access.ts';
import { PlayedShedding } from '../api/played-shedding.ts';
import { decisionOf, limitStatusOf } from '../api/decision-of.ts';
import { HTTP_LIMITS, type HttpLimits } from '../../src/http/http-listener-init.ts';
import { HTTP_SETTINGS_DEFAULTS, type HttpSettings } from '../../src/config/http-settings.ts';
import { HttpListener } from '../../src/http/http-listener.ts';

export const WALL_MILLIS = 1_700_000_000_123;
export const PARTITION = 11;

export function denialOf(changes: Partial<Decision> = {}): Decision {
  return decisionOf({ allowed: false, remaining: 0, retryAfterMillis: 12_345, ...changes });
}

export const REPORT: ClusterReport = {
  self: {
    id: 1,
    membership: 'refused',
    reason: 'why',
    refusedBy: [{ node: 2, code: 'otherFacts', text: 'why' }],
  },
  nodes: [
    {
      id: 1,
      http: '127.0.0.1:8101',
      pid: 4711,
      up: true,
      clock: 'fit',
      speaks: null,
      release: null,
      figures: {
        p99Millis: 4,
        diskP99Millis: 2,
        clockPpm: -1.5,
        stateBytes: 1_024,
        stateBytesMax: 1_048_576,
      },
    },
    {
      id: 2,
      http: null,
      pid: null,
      up: false,
      silentMillis: 3_000,
      clock: null,
      speaks: null,
      release: null,
    },
  ],
  version: 3,
  settledVersion: 2,
  rules: { version: 1, rules: [{ id: 'default', limit: 100, windowMillis: 60_000, clock: 'request' }] },
  partitions: [
    { id: 0, leader: 1, term: 3, commit: 90, placed: true, replicas: [{ node: 1, match: 90, applied: 90 }] },
  ],
};

export const FIGURES: LiveFigures = {
  atMillis: WALL_MILLIS,
  readiness: { status: 'ready' },
  rates: {
    perSecond: { allowed: 12.5, denied: 3, unavailable: 0, degraded: 0 },
    nodes: [1, 2],
    silent: [],
  },
  times: { seconds: 10, timed: 40, p50Millis: 1, p99Millis: 4 },
  clusterTimes: { seconds: 10, timed: 90, p50Millis: 2, p99Millis: 8, nodes: [1, 2] },
  openRequests: 2,
  waitingProposals: 1,
  stateBytes: 1_024,
  stateBytesMax: 1_048_576,
};

/** The result that every change gets. */
const MADE: Readonly<Record<ClusterChange['type'], ChangeMade>> = {
  nodes: { ok: true, version: 2 },
  drain: { ok: true, version: 2 },
  label: { ok: true, version: 3 },
  upgrade: { ok: true, version: 1 },
  rules: { ok: true, version: 8, pending: [] },
  tokens: { ok: true, version: 1, pending: [] },
};

export class Listener {
  /** Lines of the log. */
  readonly logged: string[] = [];
  readonly access = new PlayedAccess();
  readonly shedding = new PlayedShedding();
  refusedUnread = 0;
  readonly asked: Question[] = [];
  readonly open: AskDone[] = [];
  readonly reported: {
    readonly request: Question;
    readonly answer: AskAnswer;
    readonly startedMillis: number;
  }[] = [];
  readonly usageAsked: UsageQuery[] = [];
  usage: UsageResult = { ok: false, reason: 'tooMany' };
  readonly observed: { readonly status: number; readonly startedMillis: number }[] = [];
  /** Undefined keeps requests open. */
  answer: AskAnswer | undefined = { kind: 'decision', decision: decisionOf() };
  readonly peeks: PeekQuestion[] = [];
  readonly refunds: RefundQuestion[] = [];
  refunded: RefundQuestionAnswer = {
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
  readonly operated: CustomerRequest[] = [];
  readonly used: UsedQuestion[] = [];
  readonly customers: { readonly customerId: string; readonly action: CustomerAction }[] = [];
  customer: CustomerAnswer = {
    kind: 'customer',
    outcome: {
      isDone: true,
      record: { version: 7, tier: 'pro', overrides: [{ ruleId: 'r', limit: 5 }], isBlocked: false },
      decided: { term: 2, index: 7, position: 0, timeMillis: 90 },
    },
  };
  keyStatus: PeekAnswer = {
    kind: 'keyStatus',
    keyStatus: { limits: [limitStatusOf()], decided: { term: 2, index: 7, timeMillis: 90 }, rulesVersion: 7 },
  };
  backup: BackupStarted = { ok: false, reason: 'notLeader' };
  readonly backups: number[] = [];
  diagnose: DiagnosticsApi['diagnose'] = () => ({
    chunks: Readable.from(['{}']),
    close: () => {},
  });
  readiness: Readiness = { status: 'ready' };
  figures: LiveFigures = FIGURES;
  faults: readonly Fault[] = [];
  readonly listed: ListedRequest[] = [];
  listedAnswer: ListedAnswer = { kind: 'listed', allowed: true, lists: [{ kind: 'free' }] };
  readonly allowListed: NodeApi['allowListed'] = (request, done) => {
    this.listed.push(request);
    done(this.listedAnswer);
  };
  readonly changes: ClusterChange[] = [];
  /** The results of the next changes of customers; undefined: they succeed. */
  changed: ChangeResult | undefined;
  readonly change: NodeApi['change'] = (change, done) => {
    this.changes.push(change);
    done(this.changed ?? MADE[change.type]);
  };
  rules: RulesInForce | undefined;
  readonly listener: HttpListener;
  readonly app: FastifyInstance;

  settings: HttpSettings;

  constructor(limits: HttpLimits = HTTP_LIMITS, settings: HttpSettings = HTTP_SETTINGS_DEFAULTS) {
    this.settings = settings;
    const node: NodeApi = {
      ...this.#unreported(),
      access: this.access,
      shedding: this.shedding,
      ask: (request, done) => {
        this.asked.push(request);
        if (this.answer === undefined) this.open.push(done);
        else done(this.answer, PARTITION);
      },
      refusedUnread: (requests) => void (this.refusedUnread += requests),
      answered: (request, answer, startedMillis) => this.reported.push({ request, answer, startedMillis }),
      usage: (query, done) => {
        this.usageAsked.push(query);
        done(this.usage);
      },
      allowListed: this.allowListed,
      peek: (request, done) => {
        this.peeks.push(request);
        done(this.keyStatus, PARTITION);
      },
      refund: (request, done) => {
        this.refunds.push(request);
        done(this.refunded, PARTITION);
      },
      setUsed: (question, done) => {
        this.used.push(question);
        done(this.customer, 3);
      },
      operate: (request, done) => {
        this.operated.push(request);
        done(this.customer, PARTITION);
      },
      customer: (customerId, action, done) => {
        this.customers.push({ customerId, action });
        done(this.customer, PARTITION);
      },
      change: this.change,
      rules: () => this.rules,
      rule: (id) =>
        this.rules && { version: this.rules.version, body: this.rules.rules.find((rule) => rule.id === id) },
    };
    this.listener = new HttpListener({
      node,
      diagnostics: { diagnose: (wanted) => this.diagnose(wanted) },
      monitor: { figures: () => this.figures, faults: () => this.faults },
      address: { host: '127.0.0.1', port: 0 },
      metrics: () =>
        Promise.resolve({ contentType: 'text/plain; version=0.0.4; charset=utf-8', text: 'up 1\n' }),
      observe: (status, startedMillis) => this.observed.push({ status, startedMillis }),
      accepted: () => {},
      monotonicMillis: () => 777,
      wallMillis: () => WALL_MILLIS,
      logger: pino({ level: 'info' }, { write: (line: string) => void this.logged.push(line) }),
      limits,
      settings: () => this.settings,
    });
    this.app = this.listener.app;
  }

  /** The changes of one kind. */
  changesOf(type: ClusterChange['type']): ClusterChange['change'][] {
    return this.changes.filter((change) => change.type === type).map(({ change }) => change);
  }

  /** The part of the node that does not depend on users. */
  #unreported(): Pick<NodeApi, 'readiness' | 'wantsNoClients' | 'cluster' | 'backup'> {
    return {
      readiness: () => this.readiness,
      wantsNoClients: () => this.readiness.status === 'stopping',
      cluster: () => REPORT,
      backup: (group, done) => {
        this.backups.push(group);
        done(this.backup);
      },
    };
  }

  /** Resolves with the port. */
  async listen(): Promise<number> {
    await this.listener.listen();
    const address = this.app.server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  /** Posts `body` as JSON, or as it is when it is text. */
  async post(body: unknown, contentType = 'application/json', url = '/v1/allow'): Promise<HttpResult> {
    const payload = typeof body === 'string' ? body : JSON.stringify(body);
    const response = await this.app.inject({
      method: 'POST',
      url,
      headers: { 'content-type': contentType },
      payload,
    });
    return {
      status: response.statusCode,
      headers: response.headers,
      body: JSON.parse(response.body) as HttpBody,
    };
  }

  async decide(decision: Decision): Promise<HttpResult> {
    this.answer = { kind: 'decision', decision };
    return this.post({ userId: 'ada' });
  }
}

export interface HttpBody {
  readonly [name: string]: unknown;
  readonly error?: { readonly type: string; readonly field?: string; readonly message: string };
}

export interface HttpResult {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: HttpBody;
}
