/**
 * Changes the nodes of a running cluster from outside: asks until it is accepted, and waits until all partitions have
 * moved. It is never silent for long, and follows the nodes of the cluster when the one it asks leaves.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type ClusterReport, isClusterReport } from '../api/cluster-report.ts';
import type { LabelChange, NodeChange } from '../api/cluster-change.ts';
import { askNode, ClusterCommandError, messageOf, type NodeResponse, type Sent } from './ask-node.ts';

export interface NodesCommandInit {
  /** The URL of any node of the cluster; of an open one, on this machine. */
  readonly node: string;
  readonly change: NodeChange | { readonly label: LabelChange };
  readonly timeoutMillis: number;
  /** Nothing is said meanwhile, and what became of it as JSON. */
  readonly json?: true;
  readonly print: (line: string) => void;
}

const AGAIN_MILLIS = 500;
/** Something is said at least this often. */
const SILENCE_MILLIS_MAX = 5_000;
/** For an answer to the change itself, which may wait for the log. */
const CHANGE_MILLIS_MAX = 10_000;
const STATUS_MILLIS_MAX = 2_000;
const GIVE_ANOTHER = 'give the address of a running node of the cluster, on this machine, with --node';

/** Resolves when every partition is where the changed list of nodes wants it: a removed node may be stopped then. */
export async function changeNodes({ json, print, ...init }: NodesCommandInit): Promise<void> {
  const say = json === true ? (): void => undefined : print;
  const session = new Session({ ...init, print: say });
  try {
    const version = await session.accepted();
    if (version !== 'done') {
      say(`accepted as version ${version}, as ${init.node} says; partitions are moving`);
      await session.settled(version);
    }
    if (json === true) print(JSON.stringify({ version: version === 'done' ? null : version, done: true }));
    else print('done: all partitions have moved');
  } finally {
    session.close();
  }
}

class Session {
  readonly #init: NodesCommandInit;
  readonly #deadline: number;
  readonly #startedAt = Date.now();
  /** HTTP addresses of nodes: that of `node` first, then what the cluster says. */
  #urls: readonly string[];
  #saidAt = Date.now();
  #lastLine = '';
  #waitsFor = '';
  readonly #timer: NodeJS.Timeout;

  constructor(init: NodesCommandInit) {
    this.#init = init;
    this.#urls = [init.node];
    this.#deadline = this.#startedAt + init.timeoutMillis;
    this.#timer = setInterval(() => this.#sayIfSilent(), 1_000);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /**
   * The version under which the change was accepted. A repetition changes nothing, so whatever is not a clear answer is
   * asked again; but if nobody is there to begin with, the address is wrong. `done`: the node that is asked is the one to
   * remove, and says that it was.
   */
  async accepted(): Promise<number | 'done'> {
    const { path, sent } = changeSent(this.#init.change);
    const { node } = this.#init;
    const first = await this.#request('/v1/cluster', node, STATUS_MILLIS_MAX);
    if (first.isUnreachable === true) {
      throw new ClusterCommandError(
        `no node listens at ${node} (${messageOf(first.body)}): ${GIVE_ANOTHER}`,
        'unreachable',
      );
    }
    // Whom to follow, should this node be gone before it is done.
    if (isClusterReport(first.body)) this.#follow(node, first.body);
    for (;;) {
      const { status, body } = await this.#request(path, node, CHANGE_MILLIS_MAX, sent);
      if (status === 200 && typeof body['version'] === 'number') return body['version'];
      if (body['reason'] === 'notMember') return this.#outside(node);
      const message = messageOf(body) ?? `status ${status}`;
      if (status !== 503 && status !== 0) throw new ClusterCommandError(message);
      if (Date.now() > this.#deadline)
        throw new ClusterCommandError(`not accepted in time: ${message}`, 'unfinished');
      this.#say(`not accepted yet (${message}); asking again until ${this.#until}`);
      await delay(AGAIN_MILLIS);
    }
  }

  /** The node at `node` takes part no more. If it was to be removed, that is the end of it. */
  async #outside(node: string): Promise<'done'> {
    const { body } = await this.#request('/v1/cluster', node, STATUS_MILLIS_MAX);
    const self = isClusterReport(body) ? body.self : undefined;
    const { add, remove } = nodesOf(this.#init.change);
    if (add === undefined && self?.standing === 'removed' && self.id === remove) return 'done';
    const reason = self?.reason ?? 'this node does not belong to the cluster';
    throw new ClusterCommandError(`${node}: ${reason}; ${GIVE_ANOTHER}`);
  }

  /** All have moved, or a node that was to be removed says that it was: that comes after. */
  async settled(version: number): Promise<void> {
    for (;;) {
      const status = await this.#status();
      if (status !== undefined) {
        if (status.settledVersion >= version) return;
        const moved = status.partitions.filter(({ placed }) => placed).length;
        const absent = status.nodes.filter(({ up }) => !up).map(({ id, http }) => `node ${id} at ${http}`);
        const waiting = absent.length === 0 ? '' : `; waiting for ${absent.join(', ')}, which is not there`;
        this.#say(`${moved} of ${status.partitions.length} partitions are in place${waiting}`);
      }
      if (Date.now() > this.#deadline)
        throw new ClusterCommandError('not finished yet; it goes on by itself', 'unfinished');
      await delay(AGAIN_MILLIS);
    }
  }

  /** What the first node says that answers and belongs to the cluster. */
  async #status(): Promise<ClusterReport | undefined> {
    let problem = '';
    for (const url of this.#urls) {
      const { status, body } = await this.#request('/v1/cluster', url, STATUS_MILLIS_MAX);
      if (status !== 200 || !isClusterReport(body)) {
        problem ||= `no answer from ${url}: ${messageOf(body) ?? `status ${status}`}`;
        continue;
      }
      const { self } = body;
      if (self.standing === 'removed' && self.id === nodesOf(this.#init.change).remove) {
        return { ...body, settledVersion: Number.POSITIVE_INFINITY };
      }
      if (self.standing === 'removed' || self.standing === 'refused') {
        problem ||= `${url}: ${self.reason ?? self.standing}`;
        continue;
      }
      this.#follow(url, body);
      return body;
    }
    this.#say(`${problem}; asking again until ${this.#until}`);
    return undefined;
  }

  #follow(url: string, { nodes }: ClusterReport): void {
    const { protocol } = new URL(this.#init.node);
    const others = nodes.flatMap(({ http }) => (http === null ? [] : [`${protocol}//${http}`]));
    this.#urls = [...new Set([url, this.#init.node, ...others])];
  }

  async #request(path: string, url: string, timeoutMillis: number, sent?: Sent): Promise<NodeResponse> {
    this.#waitsFor = `waiting for an answer from ${url}`;
    const left = Math.max(1, this.#deadline - Date.now());
    const response = await askNode(new URL(path, url), Math.min(timeoutMillis, left), sent);
    this.#waitsFor = '';
    return response;
  }

  get #until(): string {
    return new Date(this.#deadline).toISOString().replace(/\.\d+/, '');
  }

  /** What is new at once, what is not now and then. */
  #say(line: string): void {
    const now = Date.now();
    if (line === this.#lastLine && now - this.#saidAt < SILENCE_MILLIS_MAX) return;
    const isRepeated = line === this.#lastLine;
    this.#lastLine = line;
    this.#saidAt = now;
    const seconds = Math.round((now - this.#startedAt) / 1_000);
    this.#init.print(isRepeated ? `still: ${line} (${seconds} s)` : line);
  }

  #sayIfSilent(): void {
    if (this.#waitsFor !== '' && Date.now() - this.#saidAt >= SILENCE_MILLIS_MAX) this.#say(this.#waitsFor);
  }
}

function changeSent(change: NodesCommandInit['change']): { readonly path: string; readonly sent: Sent } {
  const json = { contentType: 'application/json' };
  if (!('label' in change))
    return { path: '/v1/cluster/nodes', sent: { ...json, method: 'POST', body: JSON.stringify(change) } };
  const { node, ...labels } = change.label;
  const path = `/v1/cluster/nodes/${node}/labels`;
  return { path, sent: { ...json, method: 'PUT', body: JSON.stringify(labels) } };
}

/** Which nodes come and go. */
function nodesOf(change: NodesCommandInit['change']): NodeChange {
  return 'label' in change ? {} : change;
}
