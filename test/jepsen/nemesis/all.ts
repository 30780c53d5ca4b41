/** All nemeses, the selection that this machine can run, and the context to run them in. */
import type { ClusterUnderTest } from '../cluster-under-test.ts';
import { seeded } from '../../raft/seeded.ts';
import { CLOCK_NEMESES } from './clock.ts';
import { DAMAGE_NEMESES } from './damage.ts';
import { DISK_NEMESES } from './disk.ts';
import { IDENTITY_NEMESES } from './identity.ts';
import { MEMBERSHIP_NEMESES, replaceNode } from './membership.ts';
import { Claims, type Nemesis, type NemesisContext, NemesisLog } from './nemesis.ts';
import { NETWORK_NEMESES } from './network.ts';
import { PROCESS_NEMESES } from './process.ts';

export const NEMESES: readonly Nemesis[] = [
  ...PROCESS_NEMESES,
  ...NETWORK_NEMESES,
  ...CLOCK_NEMESES,
  ...DISK_NEMESES,
  ...DAMAGE_NEMESES,
  ...MEMBERSHIP_NEMESES,
  ...IDENTITY_NEMESES,
];

/** The nemeses that can run here. Prints each of the others with the reason. */
export function usableNemeses(nemeses: readonly Nemesis[], print: (line: string) => void): Nemesis[] {
  return nemeses.filter((nemesis) => {
    const lack = nemesis.needs();
    if (lack !== undefined) print(`skipped: ${nemesis.name} (${lack})`);
    return lack === undefined;
  });
}

export interface ContextInit {
  readonly cluster: ClusterUnderTest;
  readonly seed: number;
  /** Gets one line of JSON per event. */
  readonly logFile?: string;
  readonly signal?: AbortSignal;
  readonly tempo?: number;
}

export function createContext({ cluster, seed, logFile, signal, tempo = 1 }: ContextInit): NemesisContext {
  return {
    cluster,
    random: seeded(seed),
    log: new NemesisLog(logFile),
    claims: new Claims(cluster),
    signal: signal ?? new AbortController().signal,
    tempo,
    replaceNode,
  };
}
