/**
 * The state of each group at requested log indices. The whole log is replayed from the first entry on, so no snapshot
 * has to be trusted. Judges nothing.
 */
import { createHash } from 'node:crypto';
import type { Entry, GroupId } from '../../raft/types.ts';
import { decodeCommand } from '../../src/limiter/log/command.ts';
import { META_GROUP } from '../../src/meta/cluster-placement.ts';
import type { MetaRecord } from '../../src/meta/cluster-state.ts';
import { decodeMetaCommand } from '../../src/meta/meta-form.ts';
import { applyMetaCommand } from '../../src/meta/meta-state.ts';
import { loadHash32 } from '../../src/partition/hash.ts';
import type { Backup } from './backup-history.ts';
import { machineFrom } from './log-entries.ts';
import { fullestReplica, type StoppedNodes, wholeLog } from './stopped-nodes.ts';

/** The state after one entry. */
export interface LoggedState {
  readonly term: number;
  readonly timeMillis: number;
  /** For group 0: the hash of its rules and tokens, without its nodes. */
  readonly stateHash: string;
  /** 0: the group has no rules. */
  readonly rulesVersion: number;
}

export interface GroupStates {
  /** The first entry that still exists. If it is above 1, nothing can be replayed. */
  readonly firstIndex: number;
  readonly lastIndex: number;
  /** By index: the requested states that exist. */
  readonly states: ReadonlyMap<number, LoggedState>;
}

const hash = await loadHash32();

/** The indices that backups name, by group. */
export function wantedBy(backups: readonly Backup[]): Map<GroupId, Set<number>> {
  const wanted = new Map<GroupId, Set<number>>();
  for (const { group, index } of backups.flatMap(({ groups }) => groups)) {
    const indices = wanted.get(group) ?? new Set();
    wanted.set(group, indices.add(index));
  }
  return wanted;
}

/** @param wanted indices by group */
export async function statesAt(
  nodes: StoppedNodes,
  wanted: ReadonlyMap<GroupId, ReadonlySet<number>>,
): Promise<Map<GroupId, GroupStates>> {
  const found = new Map<GroupId, GroupStates>();
  for (const [group, indices] of wanted) {
    const replicas = await nodes.load(group);
    const fullest = fullestReplica(replicas);
    if (fullest === undefined) continue;
    const entries = wholeLog(replicas, fullest, (...last) => nodes.archive.entriesThrough(group, ...last));
    const firstIndex = entries[0]?.index ?? fullest.base.index + 1;
    const states = firstIndex === 1 ? replayed(group, entries, indices) : new Map<number, LoggedState>();
    found.set(group, { firstIndex, lastIndex: entries.at(-1)?.index ?? fullest.base.index, states });
  }
  return found;
}

/** The state machine of one group. */
interface Machine {
  apply(entry: Entry): void;
  known(): Pick<LoggedState, 'stateHash' | 'rulesVersion'>;
}

function replayed(
  group: GroupId,
  entries: readonly Entry[],
  indices: ReadonlySet<number>,
): Map<number, LoggedState> {
  const machine = group === META_GROUP ? metaMachine() : partitionMachine();
  const states = new Map<number, LoggedState>();
  for (const entry of entries) {
    if (entry.kind === 'command') machine.apply(entry);
    const { index, term, timeMillis } = entry;
    if (indices.has(index)) states.set(index, { term, timeMillis, ...machine.known() });
  }
  return states;
}

function partitionMachine(): Machine {
  const machine = machineFrom(undefined);
  return {
    apply: (entry) => machine.apply(decodeCommand(entry.data), entry),
    known: () => ({ stateHash: machine.hash(), rulesVersion: machine.ruleTable?.version ?? 0 }),
  };
}

const META_HASH_DIGITS = 16;

function metaMachine(): Machine {
  let record: MetaRecord | undefined;
  return {
    apply(entry) {
      record = applyMetaCommand(record, decodeMetaCommand(entry.data), hash).record;
    },
    known() {
      const { rules, definitions, tokens } = record?.state ?? {};
      const text = JSON.stringify([rules ?? null, definitions ?? null, tokens ?? null]);
      const digest = createHash('sha256').update(text).digest('hex');
      return { stateHash: digest.slice(0, META_HASH_DIGITS), rulesVersion: rules?.version ?? 0 };
    },
  };
}
