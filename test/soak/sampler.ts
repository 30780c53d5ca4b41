/**
 * Measures the processes of a cluster every few seconds: heap from metrics, memory and files from the system, disk from
 * its files.
 */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClusterUnderTest } from '../jepsen/cluster-under-test.ts';
import { usageOf } from '../jepsen/processes.ts';
import type { RunWatch } from '../jepsen/run.ts';
import type { Sample } from './plateau.ts';

const PERIOD_MILLIS = 5_000;
const ANSWER_MILLIS_MAX = 2_000;
const HEAP = /^quorate_nodejs_heap_size_used_bytes (\S+)$|^nodejs_heap_size_used_bytes (\S+)$/m;
const MIB = 1 << 20;

/** Calls `reported` with each sample. A node that does not answer in time is measured next time. */
export function sample(
  cluster: ClusterUnderTest,
  startedMillis: number,
  reported: (sample: Sample) => void,
): RunWatch {
  let checking = Promise.resolve();
  const timer = setInterval(() => {
    checking = checking.then(async () => {
      for (const node of cluster.running) {
        const seen = await peek(cluster, node, performance.now() - startedMillis);
        if (seen !== undefined) reported(seen);
      }
    });
  }, PERIOD_MILLIS);
  return {
    stop: async () => {
      clearInterval(timer);
      await checking;
    },
  };
}

async function peek(cluster: ClusterUnderTest, node: number, atMillis: number): Promise<Sample | undefined> {
  try {
    const { machine, pid } = cluster.node(node);
    const heap = await heapBytesAt(machine.address.http.port);
    if (heap === undefined || pid === undefined) return undefined;
    const { memoryMiB, files } = usageOf(cluster, node);
    const diskMiB = (await bytesIn(machine.database)) / MIB;
    return { node, pid, atMillis, heapMiB: heap / MIB, memoryMiB, files, diskMiB };
  } catch {
    // Paused, restarted or gone meanwhile.
    return undefined;
  }
}

async function heapBytesAt(port: number): Promise<number | undefined> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`, {
    signal: AbortSignal.timeout(ANSWER_MILLIS_MAX),
  });
  const [, ours, plain] = HEAP.exec(await response.text()) ?? [];
  const text = ours ?? plain;
  return text === undefined ? undefined : Number(text);
}

/** Size of all files in a folder. Files deleted meanwhile are skipped. */
async function bytesIn(directory: string): Promise<number> {
  const entries = await readdir(directory, { withFileTypes: true });
  const sizes = entries.map(async (entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return bytesIn(path);
    return (await stat(path).catch(() => undefined))?.size ?? 0;
  });
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}
