/**
 * Collects the reports of all nodes of a running cluster: the list of nodes from the first one that answers, and from
 * each node its own state. Nodes that do not answer are in the result. It judges nothing.
 */
import { type ClusterReport, type ReportedNode, isClusterReport } from '../api/cluster-report.ts';
import type { AskedCluster } from './asked-cluster.ts';
import { type Failed, noAnswer } from './answer-of.ts';
import { askNode, ClusterCommandError, messageOf, type NodeResponse } from './ask-node.ts';
import { nodeFetch, authorization } from './node-fetch.ts';
import { Readings } from './prometheus-text.ts';

const ANSWER_MILLIS_MAX = 2_000;

/** The report of one node. */
export interface SurveyedNode {
  readonly node: ReportedNode;
  /** The body of `/readyz`. Undefined: the node does not answer. */
  readonly readiness: Readonly<Record<string, unknown>> | undefined;
  readonly metrics: Readings | undefined;
  /** Why the node could not be asked. */
  readonly problem?: string;
}

/** The reports of a cluster. */
export interface Survey {
  /** The URL of the node that reported the cluster. */
  readonly asked: string;
  readonly report: ClusterReport;
  readonly nodes: readonly SurveyedNode[];
  /** The nodes that were asked before without success. */
  readonly failed: readonly Failed[];
}

/** @throws ClusterCommandError if no node of the cluster reports it */
export async function survey({ urls, name }: AskedCluster): Promise<Survey> {
  const failed: Failed[] = [];
  let isRefused = false;
  for (const url of urls) {
    const { status, body, isTrusted } = await answerOf(new URL('/v1/cluster', url));
    if (status === 200 && isClusterReport(body)) {
      const { membership, reason = membership } = body.self;
      if (membership === 'member') {
        const nodes = await Promise.all(body.nodes.map(async (node) => askOne(node, url)));
        return { asked: url, report: body, nodes, failed };
      }
      failed.push({ url, problem: `it does not belong to the cluster: ${reason}` });
      continue;
    }
    isRefused ||= status === 401 || status === 403 || !isTrusted;
    failed.push({ url, problem: messageOf(body) ?? `status ${status}` });
  }
  throw noAnswer(`no node reports the state of ${name}`, failed, isRefused);
}

/** Turns an untrusted certificate into an answer, so that one expired certificate does not hide the other nodes. */
async function answerOf(url: URL): Promise<NodeResponse & { readonly isTrusted: boolean }> {
  try {
    return { ...(await askNode(url, ANSWER_MILLIS_MAX)), isTrusted: true };
  } catch (error) {
    if (!(error instanceof ClusterCommandError)) throw error;
    return { status: 0, body: { message: error.message }, isTrusted: false };
  }
}

async function askOne(node: ReportedNode, asked: string): Promise<SurveyedNode> {
  const { http } = node;
  if (http === null)
    return { node, readiness: undefined, metrics: undefined, problem: 'where it answers is not known' };
  const origin = `${new URL(asked).protocol}//${http}`;
  const [ready, metrics] = await Promise.all([answerOf(new URL('/readyz', origin)), readingsOf(origin)]);
  if (ready.status === 0) {
    const problem = messageOf(ready.body) ?? 'no answer';
    return { node, readiness: undefined, metrics: undefined, problem };
  }
  return { node, readiness: ready.body, metrics };
}

/** The metrics of a node. Undefined if they cannot be read. */
async function readingsOf(origin: string): Promise<Readings | undefined> {
  try {
    const signal = AbortSignal.timeout(ANSWER_MILLIS_MAX);
    const response = await nodeFetch(new URL('/metrics', origin), { signal, headers: authorization() });
    return response.status === 200 ? new Readings(await response.text()) : undefined;
  } catch {
    return undefined;
  }
}
