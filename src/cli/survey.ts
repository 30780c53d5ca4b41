/**
 * What the nodes of a running cluster say of it and of themselves, for the commands that show that: one asks the first that answers for
 * the others, and each of those for itself. Who does not answer is told. It changes and judges nothing.
 */
import type { ClusterReport, ReportedNode } from '../api/cluster-report.ts';
import { isClusterReport } from '../api/cluster-report.ts';
import type { AskedCluster } from './asked-cluster.ts';
import { type Failed, noAnswer } from './answer-of.ts';
import { askNode, ClusterCommandError, messageOf, type NodeResponse } from './ask-node.ts';
import { nodeFetch } from './node-fetch.ts';
import { Readings } from './prometheus-text.ts';
import { authorization } from './shown-token.ts';

const ANSWER_MILLIS_MAX = 2_000;

export interface SurveyedNode {
  readonly node: ReportedNode;
  /** What `/readyz` says; undefined: it does not answer. */
  readonly readiness: Readonly<Record<string, unknown>> | undefined;
  readonly metrics: Readings | undefined;
  /** Why it could not be asked. */
  readonly problem?: string;
}

export interface Survey {
  /** The URL of the node that reported the cluster. */
  readonly asked: string;
  readonly report: ClusterReport;
  readonly nodes: readonly SurveyedNode[];
  /** Who was asked before, and what came of it. */
  readonly failed: readonly Failed[];
}

/** @throws ClusterCommandError if nobody who belongs to the cluster reports it */
export async function survey({ urls, name }: AskedCluster): Promise<Survey> {
  const failed: Failed[] = [];
  let isRefused = false;
  for (const url of urls) {
    const { status, body, isTrusted } = await answerOf(new URL('/v1/cluster', url));
    if (status === 200 && isClusterReport(body)) {
      const { standing, reason = standing } = body.self;
      if (standing === 'member') {
        const nodes = await Promise.all(body.nodes.map(async (node) => askOne(node, url)));
        return { asked: url, report: body, nodes, failed };
      }
      failed.push({ url, problem: `it does not belong to the cluster: ${reason}` });
      continue;
    }
    isRefused ||= status === 401 || status === 403 || !isTrusted;
    failed.push({ url, problem: messageOf(body) ?? `status ${status}` });
  }
  throw noAnswer(`no node says how ${name} is`, failed, isRefused);
}

/** One that is not trusted, with an expired certificate for example, must not hide the others. */
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

/** Of `/metrics`; undefined if they are not told. */
async function readingsOf(origin: string): Promise<Readings | undefined> {
  try {
    const signal = AbortSignal.timeout(ANSWER_MILLIS_MAX);
    const response = await nodeFetch(new URL('/metrics', origin), { signal, headers: authorization() });
    return response.status === 200 ? new Readings(await response.text()) : undefined;
  } catch {
    return undefined;
  }
}
