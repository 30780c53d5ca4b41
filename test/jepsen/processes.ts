/** Checks of the processes of a run: their memory and open files, and which of them ended by themselves. */
import { readdirSync, readFileSync } from 'node:fs';
import { type CheckResult, Findings } from './checkers/result.ts';
import type { ClusterUnderTest } from './cluster-under-test.ts';

/** Several times the memory that a node of this size needs. */
const MEMORY_MIB_MAX = 900;
const FILES_MAX = 250;

export interface Usage {
  readonly node: number;
  readonly memoryMiB: number;
  readonly files: number;
}

/** The memory and open files that a node holds now. Zero where the system does not report them. */
export function usageOf(cluster: ClusterUnderTest, node: number): Usage {
  try {
    const proc = `/proc/${cluster.node(node).pid}`;
    const memory = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`${proc}/status`, 'utf8'))?.[1];
    return { node, memoryMiB: Number(memory ?? 0) / 1_024, files: readdirSync(`${proc}/fd`).length };
  } catch {
    return { node, memoryMiB: 0, files: 0 };
  }
}

/** No process ended unexpectedly, none leaks, and every fault could be undone. */
export function checkProcesses(
  cluster: ClusterUnderTest,
  { used, notHealed }: { readonly used: readonly Usage[]; readonly notHealed: string | undefined },
): CheckResult {
  const findings = new Findings('processes');
  findings.tally('memoryMiBMax', Math.max(0, ...used.map(({ memoryMiB }) => Math.round(memoryMiB))));
  findings.tally('filesMax', Math.max(0, ...used.map(({ files }) => files)));
  for (const { node, memoryMiB, files } of used) {
    if (memoryMiB > MEMORY_MIB_MAX) findings.add(`node ${node} uses ${Math.round(memoryMiB)} MiB`);
    if (files > FILES_MAX) findings.add(`node ${node} has ${files} files and sockets open`);
  }
  findings.tally('exits', cluster.exits.length);
  for (const { id, code, signal } of cluster.unexpectedExits) {
    findings.add(`node ${id} ended by itself: ${signal ?? code}`);
  }
  if (notHealed !== undefined) findings.add(notHealed);
  return findings.result();
}
