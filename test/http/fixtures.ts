/** The HTTP door with a router that the test plays, and clocks that stand still. */
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { createHttpServer, HTTP_LIMITS, type HttpLimits } from '../../src/http/server.ts';
import type { Readiness } from '../../src/http/readiness.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import type { AllowRequest } from '../../src/limiter/request.ts';
import type { NodeChangeResult } from '../../src/meta/meta-group.ts';
import type { NodeChange } from '../../src/meta/meta-state.ts';
import type { RoutedAnswer } from '../../src/router/router.ts';

export const WALL_MILLIS = 1_700_000_000_123;
export const PARTITION = 11;

export function decisionOf(changes: Partial<Decision> = {}): Decision {
  return {
    allowed: true,
    ruleId: 'default',
    limit: 100,
    windowMillis: 60_000,
    remaining: 42,
    retryAfterMillis: 0,
    resetMillis: 59_001,
    decided: { term: 3, index: 90, timeMillis: 1_700_000_000_000 },
    ...changes,
  };
}

export function denialOf(changes: Partial<Decision> = {}): Decision {
  return decisionOf({ allowed: false, remaining: 0, retryAfterMillis: 12_345, ...changes });
}

type AnswerLater = (answer: RoutedAnswer, partition: number) => void;

export class Door {
  readonly asked: AllowRequest[] = [];
  readonly open: AnswerLater[] = [];
  readonly observed: { readonly status: number; readonly startedMillis: number }[] = [];
  /** Undefined keeps requests open. */
  answer: RoutedAnswer | undefined = { kind: 'decision', decision: decisionOf() };
  readiness: Readiness = { status: 'ready' };
  readonly changes: NodeChange[] = [];
  changed: NodeChangeResult = { ok: true, version: 2 };
  readonly app: FastifyInstance;

  constructor(limits: HttpLimits = HTTP_LIMITS) {
    this.app = createHttpServer({
      allow: (request, done) => {
        this.asked.push(request);
        if (this.answer === undefined) this.open.push(done);
        else done(this.answer, PARTITION);
      },
      readiness: () => this.readiness,
      wantsNoClients: () => this.readiness.status === 'stopping',
      cluster: () => ({ nodes: [{ id: 1 }], partitions: [] }),
      changeNodes: (change, done) => {
        this.changes.push(change);
        done(this.changed);
      },
      metrics: () =>
        Promise.resolve({ contentType: 'text/plain; version=0.0.4; charset=utf-8', text: 'up 1\n' }),
      observe: (status, startedMillis) => this.observed.push({ status, startedMillis }),
      monotonicMillis: () => 777,
      wallMillis: () => WALL_MILLIS,
      logger: pino({ level: 'silent' }),
      limits,
    });
  }

  /** Resolves with the port. */
  async listen(): Promise<number> {
    await this.app.listen({ host: '127.0.0.1', port: 0 });
    const address = this.app.server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  /** Posts `body` as JSON, or as it is when it is text. */
  async post(body: unknown, contentType = 'application/json'): Promise<HttpResult> {
    const payload = typeof body === 'string' ? body : JSON.stringify(body);
    const response = await this.app.inject({
      method: 'POST',
      url: '/v1/allow',
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
