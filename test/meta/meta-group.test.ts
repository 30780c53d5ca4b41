/** Group 0 on one node: its snapshots, and its answers to changes. */
import { FIRST_RULES } from './first-rules.ts';
import { describe, expect, it } from 'vitest';
import { CHUNK_BYTES_MAX } from '../../raft/driver/local-snapshots.ts';
import { GroupClock } from '../../raft/driver/group-clock.ts';
import { RULE_ID_BYTES_MAX } from '../../src/api/request.ts';
import { RULES_MAX, type RuleTable, validateRuleTable } from '../../src/limiter/rules.ts';
import { MetaGroup } from '../../src/meta/meta-group.ts';
import { decodeMetaCommand, encodeMeta } from '../../src/meta/meta-form.ts';
import type { NodeAddress } from '../../src/api/node-address.ts';
import type { MetaCommand } from '../../src/meta/cluster-state.ts';
import { loadHash32 } from '../../src/partition/hash.ts';
import { encodePlacement } from '../../src/meta/placement-text.ts';
import { foundingPlacement } from '../../src/partition/placement.ts';
import type { ChangeResult } from '../../src/api/cluster-change.ts';
import { chunksOf } from '../raft/driver/whole-snapshots.ts';

const hash = await loadHash32();
const AT = { host: 'h', port: 1 };
const now = (): number => 0;
const nothing = (): void => undefined;

function metaGroup(): MetaGroup {
  return new MetaGroup({
    clock: new GroupClock(now, now),
    founders: [],
    rules: FIRST_RULES,
    fixed: { replicas: 1, partitions: 16, hash },
    requestProposal: nothing,
    stateChanged: nothing,
    configChanged: nothing,
  });
}

/** Group 0 of a new cluster with one node. */
function createdGroup(): MetaGroup {
  const meta = metaGroup();
  const nodes = [{ id: 1, incarnation: 'one' }];
  apply(meta, 1, {
    type: 'create',
    rules: FIRST_RULES,
    nodes,
    replicas: 1,
    partitions: 16,
    clusterVersion: 1,
  });
  return meta;
}

function apply(meta: MetaGroup, index: number, command: MetaCommand): void {
  meta.apply({ index, term: 1, timeMillis: 0, kind: 'command', data: encodeMeta(command) });
}

/** Its next proposal becomes the entry at `index`. Returns the proposal. */
function propose(meta: MetaGroup, index: number): MetaCommand | undefined {
  const data = meta.takeProposal();
  if (data === undefined) return undefined;
  meta.proposed({ index, term: 1, timeMillis: 0, kind: 'command', data });
  return decodeMetaCommand(data);
}

function lead(meta: MetaGroup): void {
  meta.statusChanged({ isLeader: true, leader: 1 });
}

function loseLead(meta: MetaGroup): void {
  meta.statusChanged({ isLeader: false, leader: 2 });
}

function addressesOf(id: number): Pick<NodeAddress, 'http' | 'peer'> {
  return { http: { host: 'h', port: id }, peer: { host: 'h', port: 100 + id } };
}

function ofRing(ids: readonly number[]): string {
  return encodePlacement(foundingPlacement(ids, 16, 1, hash), ids);
}

/** The largest possible table of rules. */
function largestTable(): RuleTable {
  const rules = Array.from({ length: RULES_MAX }, (_, i) => ({
    // Three bytes, in the middle of which a chunk may end, and then one for which JSON needs six.
    id: `${i}€`.padEnd(RULE_ID_BYTES_MAX - 2, '\u0001'),
    limit: 999_999,
    windowMillis: 2_678_400_000,
    clock: 'request',
    meter: 'leakyBucket',
    burst: 499_999,
    queue: 499_999,
  }));
  return validateRuleTable({ version: 2, rules });
}

describe('a snapshot of group 0', () => {
  it.each([
    ['of a node that knows nothing yet', () => metaGroup()],
    [
      'with a placement that the ring alone would not make',
      () => {
        const meta = metaGroup();
        const nodes = [1, 2, 3].map((id) => ({ id, incarnation: `of ${id}` }));
        apply(meta, 1, {
          type: 'create',
          rules: FIRST_RULES,
          nodes,
          replicas: 1,
          partitions: 16,
          clusterVersion: 1,
        });
        apply(meta, 2, { type: 'nodes', change: { add: { id: 4, ...addressesOf(4) }, remove: 2 } });
        apply(meta, 3, { type: 'settled', version: 2 });
        apply(meta, 4, { type: 'nodes', change: { add: { id: 5, ...addressesOf(5) }, remove: 3 } });
        const { placement, settledPlacement } = meta.state ?? {};
        expect(placement).not.toBe(ofRing([1, 4, 5]));
        expect(settledPlacement).not.toBe(ofRing([1, 3, 4]));
        return meta;
      },
    ],
    [
      'with the largest table of rules',
      () => {
        const meta = createdGroup();
        apply(meta, 2, { type: 'rules', table: largestTable(), base: 1 });
        expect(meta.state?.rules?.rules).toHaveLength(RULES_MAX);
        return meta;
      },
    ],
    [
      'with tokens',
      () => {
        const meta = createdGroup();
        const token = { id: 'abcdefgh', role: 'admin', name: 'ops', sha256: 'a'.repeat(64) } as const;
        apply(meta, 2, { type: 'tokens', change: { create: token } });
        expect(meta.state?.tokens?.entries).toEqual([token]);
        return meta;
      },
    ],
  ])('%s has chunks that the driver accepts, and can be restored', (_name, made) => {
    const meta = made();
    const chunks = chunksOf(meta.snapshot());
    expect(chunks.length).toBeGreaterThan(0);
    for (const { length } of chunks) {
      expect(length).toBeGreaterThan(0);
      expect(length).toBeLessThanOrEqual(CHUNK_BYTES_MAX);
    }
    const other = metaGroup();
    const target = other.restore();
    for (const chunk of chunks) target.add(chunk);
    target.complete();
    target.install();
    expect(other.state).toEqual(meta.state);
  });

  it('ends when it is abandoned', () => {
    const source = metaGroup().snapshot();
    source.abandon();
    expect(source.next()).toBeUndefined();
  });
});

describe('a leader of group 0', () => {
  it('names the numbers for which it drains no further node', () => {
    const meta = createdGroup();
    lead(meta);
    const answers: ChangeResult[] = [];
    meta.change({ type: 'drain', change: { node: 1, isDraining: true } }, (result) => answers.push(result));
    const command = propose(meta, 2);
    expect(command).toMatchObject({ type: 'drain' });
    apply(meta, 2, command!);
    const message = 'at least 1 of 1 nodes must stay undrained, but 0 would be left; add nodes first';
    expect(answers).toEqual([{ ok: false, reason: 'tooFewUndrained', message }]);
  });
});

describe('a leader of group 0 that loses its leadership', () => {
  it('answers waiting requests once: an entry of another leader at that index does not answer them', () => {
    const meta = createdGroup();
    lead(meta);
    const answers: ChangeResult[] = [];
    meta.change({ type: 'rules', table: largestTable(), base: 1 }, (result) => answers.push(result));
    expect(propose(meta, 2)).toMatchObject({ type: 'rules' });
    loseLead(meta);
    const unknown = { ok: false, reason: 'unknownOutcome' };
    expect(answers).toEqual([unknown]);
    apply(meta, 2, { type: 'nodes', change: { add: { id: 2, http: AT, peer: AT } } });
    expect(meta.state?.version).toBe(2);
    expect(answers).toEqual([unknown]);
  });

  it('proposes again to create the cluster when it leads again, even if the log may still contain that', () => {
    const meta = metaGroup();
    lead(meta);
    expect(propose(meta, 2)).toMatchObject({ type: 'create' });
    expect(propose(meta, 3)).toBeUndefined();
    loseLead(meta);
    lead(meta);
    expect(propose(meta, 3)).toMatchObject({ type: 'create' });
  });

  it('proposes the introduction of a node again when it leads again', () => {
    const meta = createdGroup();
    const node = { id: 2, incarnation: 'two' };
    lead(meta);
    meta.introduce(node);
    expect(propose(meta, 2)).toEqual({ type: 'introduce', node });
    meta.introduce(node);
    expect(propose(meta, 3)).toBeUndefined();
    loseLead(meta);
    lead(meta);
    meta.introduce(node);
    expect(propose(meta, 3)).toEqual({ type: 'introduce', node });
  });
});
