/**
 * Changes the nodes of a running cluster: repeats the change until it is accepted, and waits until all partitions have
 * moved. It prints its progress, and switches to another node when the one that it asks leaves.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type ClusterReport, isClusterReport } from '../api/cluster-report.ts';
import type { LabelChange, NodeChange } from '../api/cluster-change.ts';
import { askNode, ClusterCommandError, messageOf, type NodeResponse, type Sent } from './ask-node.ts';

/** The change, and how long to wait. */
export interface NodesCommandInit {
  /** The URL of any node of the cluster. Without tokens it must be on this machine. */
  readonly node: string;
  readonly change: NodeChange | { readonly label: LabelChange };
  readonly timeoutMillis: number;
  /** Print no progress, and the result as JSON. */
  readonly json?: true;
  readonly print: (line: string) => void;
}

const AGAIN_MILLIS = 500;
/** Longest time without a line of progress. */
const SILENCE_MILLIS_MAX = 5_000;
/** Longest time for the answer to the change. The node may wait for its log. */
const CHANGE_MILLIS_MAX = 10_000;
const STATUS_MILLIS_MAX = 2_000;
const GIVE_ANOTHER = 'give the address of a running node of the cluster, on this machine, with --node';

/** Resolves when all partitions are in place. A removed node can be stopped then. */
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
  /** HTTP addresses to ask: first the given node, then those that the cluster reports. */
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
   * Returns the version under which the change was accepted. Repeating the change does no harm, so it is sent until
   * there is a clear answer; but if nobody answers the first time, the address is wrong. Returns `done` if the node
   * that is asked is the one to remove, and reports that it was removed.
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
    // Remember the other nodes, in case this one leaves before the change is done.
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

  /** The node at `node` is not in the cluster any more. If it is the one to remove, the change is done. */
  async #outside(node: string): Promise<'done'> {
    const { body } = await this.#request('/v1/cluster', node, STATUS_MILLIS_MAX);
    const self = isClusterReport(body) ? body.self : undefined;
    const { add, remove } = nodesOf(this.#init.change);
    if (add === undefined && self?.membership === 'removed' && self.id === remove) return 'done';
    const reason = self?.reason ?? 'this node does not belong to the cluster';
    throw new ClusterCommandError(`${node}: ${reason}; ${GIVE_ANOTHER}`);
  }

  /** Waits until all partitions are in place, or the node to remove reports that it was removed, which comes later. */
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
        throw new ClusterCommandError(
          'not finished yet; the cluster continues without this command',
          'unfinished',
        );
      await delay(AGAIN_MILLIS);
    }
  }

  /** The report of the first node that answers and belongs to the cluster. */
  async #status(): Promise<ClusterReport | undefined> {
    let problem = '';
    for (const url of this.#urls) {
      const { status, body } = await this.#trusted(url);
      if (status !== 200 || !isClusterReport(body)) {
        problem ||= `no answer from ${url}: ${messageOf(body) ?? `status ${status}`}`;
        continue;
      }
      const { self } = body;
      if (self.membership === 'removed' && self.id === nodesOf(this.#init.change).remove) {
        return { ...body, settledVersion: Number.POSITIVE_INFINITY };
      }
      if (self.membership === 'removed' || self.membership === 'refused') {
        problem ||= `${url}: ${self.reason ?? self.membership}`;
        continue;
      }
      this.#follow(url, body);
      return body;
    }
    // Without this, the last line would blame a node that had only the rest of the time to answer.
    if (Date.now() < this.#deadline) this.#say(`${problem}; asking again until ${this.#until}`);
    return undefined;
  }

  #follow(url: string, { nodes }: ClusterReport): void {
    const { protocol } = new URL(this.#init.node);
    const others = nodes.flatMap(({ http }) => (http === null ? [] : [`${protocol}//${http}`]));
    this.#urls = [...new Set([url, this.#init.node, ...others])];
  }

  /** The report of a node. A certificate that is not trusted is no refusal: the change is accepted, others may answer. */
  async #trusted(url: string): Promise<NodeResponse> {
    try {
      return await this.#request('/v1/cluster', url, STATUS_MILLIS_MAX);
    } catch (error) {
      if (!(error instanceof ClusterCommandError)) throw error;
      this.#waitsFor = '';
      return { status: 0, body: { message: error.message } };
    }
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

  /** Prints a new line at once, and a repeated one from time to time. */
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

/** The nodes that a change adds or removes. */
function nodesOf(change: NodesCommandInit['change']): NodeChange {
  return 'label' in change ? {} : change;
}
