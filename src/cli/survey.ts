/**
 * What the nodes of a running cluster say of it and of themselves, for the commands that show that: one asks the first that answers for
 * the others, and each of those for itself. Who does not answer is told. It changes and judges nothing.
 */
import type { ClusterReport, ReportedNode } from '../api/cluster-report.ts';
import { isClusterReport } from '../api/cluster-report.ts';
import { addressText } from '../api/node-address.ts';
import { readCluster } from '../config/cluster-directory.ts';
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
  /** Who told of the cluster. */
  readonly via: string;
  readonly report: ClusterReport;
  readonly nodes: readonly SurveyedNode[];
  /** Who was asked before, and what came of it. */
  readonly failed: readonly { readonly via: string; readonly problem: string }[];
}

/** At least one of the two: what was not named is not asked, for it may be another cluster. */
export interface Where {
  /** The URL of a node. */
  readonly via?: string;
  /** With a `cluster.json` that names nodes, which are asked one after the other. */
  readonly data?: string;
}

/** Whom to ask about the cluster. @throws what reading `data` throws, where nothing else is named */
async function candidates({ via, data }: Where): Promise<string[]> {
  const read = data === undefined ? undefined : readCluster(data);
  const config = await (via === undefined ? read : read?.catch(() => undefined));
  const protocol = via === undefined ? 'http:' : new URL(via).protocol;
  const others = (config?.nodes ?? []).map(({ http }) => {
    const scheme = config?.tls?.doors === undefined ? protocol : 'https:';
    return `${scheme}//${addressText(http)}`;
  });
  return [...new Set([...(via === undefined ? [] : [new URL(via).origin]), ...others])];
}

/** @throws ClusterCommandError if nobody who belongs to the cluster tells of it */
export async function survey(where: Where): Promise<Survey> {
  const failed: { via: string; problem: string }[] = [];
  let isRefused = false;
  for (const via of await candidates(where)) {
    const { status, body, isTrusted } = await answerOf(new URL('/v1/cluster', via));
    if (status === 200 && isClusterReport(body)) {
      const { standing, reason = standing } = body.self;
      if (standing === 'member') {
        const nodes = await Promise.all(body.nodes.map(async (node) => askOne(node, via)));
        return { via, report: body, nodes, failed };
      }
      failed.push({ via, problem: `it does not belong to the cluster: ${reason}` });
      continue;
    }
    isRefused ||= status === 401 || status === 403 || !isTrusted;
    failed.push({ via, problem: messageOf(body) ?? `status ${status}` });
  }
  const asked = failed.map(({ via, problem }) => `${via}: ${problem}`).join('; ');
  throw new ClusterCommandError(
    `no node tells how the cluster is (${asked}): give the address of a running node with --via`,
    isRefused ? 'refused' : 'unreachable',
  );
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

async function askOne(node: ReportedNode, via: string): Promise<SurveyedNode> {
  const { http } = node;
  if (http === null)
    return { node, readiness: undefined, metrics: undefined, problem: 'where it answers is not known' };
  const origin = `${new URL(via).protocol}//${http}`;
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
