/** Changes the nodes of a running cluster from outside: asks until it is done, and waits until all partitions moved. */
import { setTimeout as delay } from 'node:timers/promises';
import type { NodeChange } from './meta/meta-state.ts';

export interface NodesCommandInit {
  /** HTTP address of any node of the cluster, on this machine. */
  readonly via: string;
  readonly change: NodeChange;
  readonly timeoutMillis: number;
  readonly print: (line: string) => void;
}

/** The cluster refuses the change, or could not be asked in time. */
export class NodesCommandError extends Error {
  readonly code = 'NODES_COMMAND';
  override readonly name = 'NodesCommandError';
}

const AGAIN_MILLIS = 500;

/** Resolves when every partition is where the changed list of nodes wants it: a removed node may be stopped then. */
export async function changeNodes(init: NodesCommandInit): Promise<void> {
  const { via, change, timeoutMillis, print } = init;
  const deadline = Date.now() + timeoutMillis;
  const version = await accepted(via, change, deadline);
  print(`accepted as version ${version}; partitions are moving`);
  for (let shown = ''; ; await delay(AGAIN_MILLIS)) {
    const { settledVersion, moved, partitions } = await progress(via);
    if (settledVersion >= version) break;
    const line = `${moved} of ${partitions} partitions are in place`;
    if (line !== shown) print(line);
    shown = line;
    if (Date.now() > deadline) throw new NodesCommandError('not finished yet; it goes on by itself');
  }
  print('done: all partitions have moved');
}

/** A repetition changes nothing, so whatever is not a clear answer is asked again. */
async function accepted(via: string, change: NodeChange, deadline: number): Promise<number> {
  for (;;) {
    const { status, body } = await post(new URL('/v1/cluster/nodes', via), change);
    if (status === 200 && typeof body['version'] === 'number') return body['version'];
    if (status !== 503 && status !== 0) throw new NodesCommandError(messageOf(body) ?? `status ${status}`);
    if (Date.now() > deadline)
      throw new NodesCommandError(messageOf(body) ?? 'no node of the cluster answers');
    await delay(AGAIN_MILLIS);
  }
}

type Body = Readonly<Record<string, unknown>>;

/** Status 0: nobody answered. */
async function post(url: URL, change: NodeChange): Promise<{ status: number; body: Body }> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(change),
      signal: AbortSignal.timeout(10_000),
    });
    return { status: response.status, body: (await response.json()) as Body };
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return { status: 0, body: { message: `${url.host}: ${String(cause)}` } };
  }
}

function messageOf(body: Body): string | undefined {
  const { message, error } = body;
  if (typeof message === 'string') return message;
  return typeof error === 'object' && error !== null ? messageOf(error as Body) : undefined;
}

async function progress(via: string): Promise<{ settledVersion: number; moved: number; partitions: number }> {
  try {
    const response = await fetch(new URL('/v1/cluster', via), { signal: AbortSignal.timeout(2_000) });
    const body = (await response.json()) as {
      settledVersion: number;
      partitions: readonly { readonly placed: boolean }[];
    };
    const moved = body.partitions.filter(({ placed }) => placed).length;
    return { settledVersion: body.settledVersion, moved, partitions: body.partitions.length };
  } catch {
    return { settledVersion: 0, moved: 0, partitions: 0 };
  }
}
