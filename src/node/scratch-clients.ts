/**
 * The HTTP and RESP listeners of one node of a scratch cluster, with clients that ask them over loopback. So the
 * code for each request is compiled for real sockets. It uses free ports, for about a second.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { pino } from 'pino';
import type { AskAnswer } from '../api/question.ts';
import { HTTP_SETTINGS_DEFAULTS } from '../config/http-settings.ts';
import type { ClusterConfig } from '../config/config.ts';
import { HttpListener } from '../http/http-listener.ts';
import { RespListener } from '../resp/resp-listener.ts';
import type { LoadShedder } from '../shedding/load-shedder.ts';
import { accessOf } from './access.ts';
import { nodeApi, viewOf } from './node-api.ts';
import { ListenerUsage } from './listener-usage.ts';
import type { NodeCore } from './node-core.ts';
import type { Clocks } from '../api/clocks.ts';
import { NodeMonitor } from './node-monitor.ts';
import { NodePace } from './node-pace.ts';
import { NodeReadiness } from './readiness.ts';
import { SlowDecisions } from './slow-decisions.ts';

const HOST = '127.0.0.1';
/**
 * Each client sends one request at a time, as most real clients do. There are few, so that each turn decides few
 * and many turns run.
 */
const HTTP_CLIENTS = 3;
/** RESP clients, by number of requests that each sends at a time. */
const PIPELINES = [1, 1, 8];
/** From this position in a pipeline on, requests have descriptors, which the rules put under two limits. */
const WITH_DESCRIPTORS_FROM = 7;
/** Few enough users that some requests are denied. */
const USERS = 200;

/** Number of answers by kind. */
export interface ScratchAnswers {
  granted: number;
  denied: number;
  others: number;
}

/** What `ScratchClients` needs. */
export interface ScratchClientsInit {
  readonly config: ClusterConfig;
  readonly nodeId: number;
  readonly clocks: Clocks;
  readonly shedder: LoadShedder;
  readonly soon: (task: () => void) => void;
  /** Counts the answers of all nodes. */
  readonly answers: ScratchAnswers;
}

/** The listeners and clients of one node. */
export class ScratchClients {
  readonly #http: HttpListener;
  readonly #resp: RespListener;
  readonly #sockets: Socket[] = [];
  #asked = 0;

  constructor(core: NodeCore, init: ScratchClientsInit) {
    const { config, nodeId, clocks, shedder, soon, answers } = init;
    const readiness = new NodeReadiness({ groups: 1, isFounder: true });
    readiness.started(core);
    const logger = pino({ level: 'silent' });
    const usage = new ListenerUsage(clocks);
    const view = viewOf({ config, nodeId }, readiness, clocks);
    const access = accessOf({ configured: [], tokens: () => core.tokens, isBehind: () => false });
    const slow = new SlowDecisions({ ...clocks, logger });
    const pace = new NodePace(usage, clocks.monotonicMillis);
    const behind = nodeApi({ nodeId }, {}, { readiness, view, usage, access, slow, shedder, pace });
    const node = {
      ...behind,
      answered(...counted: Parameters<typeof behind.answered>): void {
        behind.answered(...counted);
        count(answers, counted[1]);
      },
    };
    const common = { node, address: { host: HOST, port: 0 }, logger, ...clocks, accepted: () => undefined };
    this.#http = new HttpListener({
      ...common,
      monitor: new NodeMonitor({ readiness, view, usage, clocks }),
      diagnostics: { diagnose: () => undefined },
      metrics: () => Promise.resolve({ contentType: '', text: '' }),
      observe: () => undefined,
      settings: () => HTTP_SETTINGS_DEFAULTS,
    });
    this.#resp = new RespListener({ ...common, version: '', atTurnEnd: soon });
  }

  /**
   * Starts the listeners and connects the clients. @throws the error of the system, if listening or connecting on
   * loopback fails
   */
  async connect(): Promise<void> {
    await Promise.all([this.#http.listen(), this.#resp.listen()]);
    const ports = [
      ...Array.from({ length: HTTP_CLIENTS }, () => this.#http.port),
      ...PIPELINES.map(() => this.#resp.port),
    ];
    await Promise.all(ports.map((port) => this.#connectTo(port)));
  }

  /** Each client sends its next requests. Returns how many that are. */
  ask(): number {
    const before = this.#asked;
    for (const [i, socket] of this.#sockets.entries())
      socket.write(i < HTTP_CLIENTS ? this.#httpRequest() : this.#pipeline(PIPELINES[i - HTTP_CLIENTS] ?? 0));
    return this.#asked - before;
  }

  /** Closes everything. */
  async end(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    const closed = Promise.all([this.#http.close(), this.#resp.close()]);
    this.#http.closeAllConnections();
    this.#resp.closeAllConnections();
    await closed;
  }

  async #connectTo(port: number): Promise<void> {
    const socket = connect({ host: HOST, port, noDelay: true });
    this.#sockets.push(socket);
    await once(socket, 'connect');
    // Requests on a connection that breaks stay unanswered until the time is over.
    socket.on('error', () => undefined);
    socket.resume();
  }

  #httpRequest(): string {
    const body = JSON.stringify({ userId: this.#nextUser() });
    return `POST /v1/allow HTTP/1.1\r\nhost: ${HOST}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  }

  #pipeline(length: number): string {
    let text = '';
    for (let i = 0; i < length; i += 1) {
      const user = this.#nextUser();
      text +=
        i < WITH_DESCRIPTORS_FROM
          ? commandText('ALLOW', user)
          : commandText('MATCH', '2', 'user', user, 'ip', `10.0.0.${i}`);
    }
    return text;
  }

  #nextUser(): string {
    this.#asked += 1;
    return `user:${(this.#asked * 7) % USERS}`;
  }
}

function count(answers: ScratchAnswers, answer: AskAnswer): void {
  if (answer.kind !== 'decision') answers.others += 1;
  else if (answer.decision.allowed) answers.granted += 1;
  else answers.denied += 1;
}

function commandText(...args: readonly string[]): string {
  return `*${args.length}\r\n${args.map((arg) => `$${arg.length}\r\n${arg}\r\n`).join('')}`;
}
