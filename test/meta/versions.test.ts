/**
 * The version of the cluster in the state of group 0: how it is raised, when that is refused, and which nodes are
 * accepted afterwards.
 */
import { FIRST_RULES } from './first-rules.ts';
import { describe, expect, it } from 'vitest';
import type { ChangeResult, NodeBehind } from '../../src/api/cluster-change.ts';
import { VERSIONS, type VersionRange } from '../../src/api/versions.ts';
import { Admission } from '../../src/meta/admission.ts';
import { ChangeForwarder } from '../../src/meta/change-forwarder.ts';
import {
  decodeMetaCommand,
  decodeMetaRecord,
  encodeMeta,
  MetaDecodeError,
  NewerClusterError,
} from '../../src/meta/meta-form.ts';
import type { MetaGroup } from '../../src/meta/meta-group.ts';
import { applyMetaCommand } from '../../src/meta/meta-state.ts';
import type { MetaChange, MetaCommand, MetaRecord } from '../../src/meta/cluster-state.ts';
import { SpokenVersions } from '../../src/meta/versions.ts';
import { loadHash32 } from '../../src/partition/hash.ts';
import type { Hello } from '../../src/wire/hello.ts';
import { beNextVersion, NEXT, THIS } from '../upgrade/next-version.ts';

const hash = await loadHash32();
/** The cluster is upgraded from this version, 1, to the next one, 2, which this process supports. */
const NEWER = NEXT.max + 1;
const UPGRADE = { type: 'upgrade', change: { version: NEXT.max } } as const;
beNextVersion();

function created(clusterVersion = THIS.max): MetaRecord {
  const nodes = [1, 2, 3].map((id) => ({ id, incarnation: `of ${id}` }));
  const command: MetaCommand = {
    type: 'create',
    rules: FIRST_RULES,
    nodes,
    replicas: 1,
    partitions: 4,
    clusterVersion,
  };
  const { record } = applyMetaCommand(undefined, command, hash);
  if (record === undefined) throw new Error('nothing was created');
  return record;
}

function raised(record: MetaRecord, version: number): ReturnType<typeof applyMetaCommand> {
  return applyMetaCommand(record, { type: 'upgrade', change: { version } }, hash);
}

function helloOf(node: number, speaks: VersionRange, incarnation = `of ${node}`): Hello {
  return { node, incarnation, target: 1, facts: 'facts', speaks };
}

describe('the version of a cluster', () => {
  it('is the version of the nodes that created it', () => {
    expect(created(1).state.clusterVersion).toBe(1);
    expect(created(2).state.clusterVersion).toBe(2);
  });

  it('is raised forever; a repetition changes nothing', () => {
    const { record, refusal } = raised(created(), 2);
    expect([record?.state.clusterVersion, refusal]).toEqual([2, undefined]);
    expect(record && raised(record, 2)).toEqual({ record });
    expect(record && raised(record, 1)).toEqual({ record, refusal: 'lowerVersion' });
    expect(applyMetaCommand(undefined, UPGRADE, hash)).toEqual({
      record: undefined,
      refusal: 'lowerVersion',
    });
  });

  it('is in snapshots', () => {
    const before = created();
    const { record = before } = raised(before, 2);
    expect(decodeMetaRecord([encodeMeta(record)])).toEqual(record);
    expect(decodeMetaRecord([encodeMeta(before)])).toEqual(before);
    for (const clusterVersion of [0, -1, 1.5, '1', null, undefined]) {
      const bytes = new TextEncoder().encode(
        JSON.stringify({ ...before, state: { ...before.state, clusterVersion } }),
      );
      expect(() => decodeMetaRecord([bytes])).toThrow(MetaDecodeError);
    }
  });

  it('is decoded as it was encoded', () => {
    expect(decodeMetaCommand(encodeMeta(UPGRADE))).toEqual(UPGRADE);
    for (const change of [{}, { version: 0 }, { version: '2' }, undefined]) {
      const bytes = new TextEncoder().encode(JSON.stringify({ type: 'upgrade', change }));
      expect(() => decodeMetaCommand(bytes)).toThrow(MetaDecodeError);
    }
  });

  it('above the maximum of this program stops it before it reads anything else, with a remedy', () => {
    const strange = { state: { clusterVersion: NEWER, nodes: 'of another form' } };
    const read = [
      () => decodeMetaRecord([new TextEncoder().encode(JSON.stringify(strange))]),
      () => decodeMetaCommand(encodeMeta({ type: 'upgrade', change: { version: NEWER } })),
      () =>
        decodeMetaCommand(
          encodeMeta({
            type: 'create',
            rules: FIRST_RULES,
            nodes: [],
            replicas: 1,
            partitions: 1,
            clusterVersion: NEWER,
          }),
        ),
    ];
    for (const each of read) {
      expect(each).toThrow(NewerClusterError);
      expect(each).toThrow(
        `raised to version ${NEWER}, and this program reads no version above ${VERSIONS.max}: start this node with a newer`,
      );
    }
  });
});

describe('a higher version is proposed', () => {
  const { state } = created();

  function answer(heard: readonly Hello[], version = 2): ChangeResult | undefined {
    const versions = new SpokenVersions(1);
    for (const hello of heard) versions.introduced(hello);
    return versions.answerTo({ type: 'upgrade', change: { version } }, state);
  }

  it('if every other node is connected and supports it', () => {
    expect(answer([helloOf(2, NEXT), helloOf(3, { min: 2, max: NEWER })])).toBeUndefined();
  });

  it.each<[string, readonly Hello[], readonly NodeBehind[]]>([
    ['speaks less', [helloOf(2, THIS), helloOf(3, NEXT)], [{ node: 2, speaks: 1 }]],
    ['is not connected', [helloOf(2, NEXT)], [{ node: 3 }]],
    [
      'has another database than the recorded one',
      [helloOf(2, NEXT, 'new'), helloOf(3, NEXT)],
      [{ node: 2 }],
    ],
    [
      'was downgraded since',
      [helloOf(2, NEXT), helloOf(3, NEXT), helloOf(3, THIS)],
      [{ node: 3, speaks: 1 }],
    ],
  ])('but not if one %s', (_, heard, behind) => {
    expect(answer(heard)).toMatchObject({ ok: false, reason: 'nodesBehind', behind });
  });

  it('but not while a leaving node supports less, or an added node has not connected', () => {
    const versions = new SpokenVersions(1);
    for (const id of [2, 3]) versions.introduced(helloOf(id, NEXT));
    versions.introduced(helloOf(4, THIS));
    const changed = {
      ...state,
      nodes: [...state.nodes, { id: 5 }],
      leaving: [{ id: 4, incarnation: 'of 4' }],
    };
    expect(versions.behind(changed, 2)).toEqual([{ node: 5 }, { node: 4, speaks: 1 }]);
    versions.gone(3);
    expect(versions.behind(changed, 2)).toEqual([{ node: 3 }, { node: 5 }, { node: 4, speaks: 1 }]);
  });

  it('but not if the cluster has that version already', () => {
    expect(answer([], 1)).toEqual({ ok: true, version: 1 });
    const versions = new SpokenVersions(1);
    const upgraded = { ...state, clusterVersion: 2 };
    expect(versions.answerTo(UPGRADE, upgraded)).toEqual({ ok: true, version: 2 });
    const lower = { type: 'upgrade', change: { version: 1 } } as const;
    expect(versions.answerTo(lower, upgraded)).toEqual({ ok: false, reason: 'lowerVersion' });
  });

  it('and a node that was refused for its version is not added before it supports a higher one', () => {
    const versions = new SpokenVersions(1);
    const add = { id: 4, http: { host: 'h', port: 1 }, peer: { host: 'h', port: 2 } };
    const change: MetaChange = { type: 'nodes', change: { add } };
    const upgraded = { ...state, clusterVersion: 2 };
    expect(versions.answerTo(change, upgraded)).toBeUndefined();
    versions.refused(helloOf(4, THIS));
    expect(versions.answerTo(change, upgraded)).toEqual({ ok: false, reason: 'olderNode' });
    // The node was added already, and this is a repetition.
    const nodes = [...upgraded.nodes, { id: 4 }];
    expect(versions.answerTo(change, { ...upgraded, nodes })).toBeUndefined();
    expect(versions.answerTo({ type: 'nodes', change: { remove: 3 } }, upgraded)).toBeUndefined();
    versions.introduced(helloOf(4, NEXT));
    expect(versions.answerTo(change, upgraded)).toBeUndefined();
  });

  it('and a bounded number of refused nodes is remembered', () => {
    const versions = new SpokenVersions(1);
    const add = { id: 1_000, http: { host: 'h', port: 1 }, peer: { host: 'h', port: 2 } };
    const asked = (): unknown =>
      versions.answerTo({ type: 'nodes', change: { add } }, { ...state, clusterVersion: 2 });
    versions.refused(helloOf(add.id, THIS));
    for (let id = 10; id < 73; id += 1) versions.refused(helloOf(id, THIS));
    expect(asked()).toEqual({ ok: false, reason: 'olderNode' });
    versions.refused(helloOf(73, THIS));
    expect(asked()).toBeUndefined();
  });

  it('or the refusal names the nodes with an older version', () => {
    const reported = answer([helloOf(2, THIS)]);
    const message = expect.stringMatching(
      /^node 2 speaks 1, node 3 is not connected: start it with a quorate that speaks version 2/,
    ) as string;
    expect(reported).toMatchObject({ message });
  });
});

/** Node 1 asks; node 2 leads. */
function asking(leaderSpeaks: VersionRange): {
  forwarder: ChangeForwarder;
  sent: string[];
  asked: MetaChange[];
} {
  const sent: string[] = [];
  const asked: MetaChange[] = [];
  const versions = new SpokenVersions(1);
  versions.introduced(helloOf(2, leaderSpeaks));
  versions.introduced(helloOf(3, NEXT));
  const meta = {
    isLeader: false,
    leader: 2,
    state: created().state,
    change: (change: MetaChange) => asked.push(change),
  };
  const forwarder = new ChangeForwarder({
    meta: meta as unknown as MetaGroup,
    versions,
    isConnected: () => true,
    send: (_, type) => sent.push(type) > 0,
    firstId: 1,
  });
  return { forwarder, sent, asked };
}

describe('a change that the leader of group 0 does not know', () => {
  it('is not forwarded to it, which would close the connection: the answer names the nodes with an older version', () => {
    const { forwarder, sent, asked } = asking(THIS);
    const reported: ChangeResult[] = [];
    forwarder.change(UPGRADE, (result) => reported.push(result));
    expect(reported).toMatchObject([{ ok: false, reason: 'nodesBehind', behind: [{ node: 2, speaks: 1 }] }]);
    expect([sent, asked]).toEqual([[], []]);
    forwarder.change({ type: 'drain', change: { node: 3, isDraining: true } }, () => undefined);
    expect(sent).toEqual(['change']);
  });

  it('is not forwarded to a leader that does not support the version to which the cluster is raised', () => {
    const { forwarder, sent } = asking(NEXT);
    const reported: ChangeResult[] = [];
    const version = NEXT.max + 1;
    forwarder.change({ type: 'upgrade', change: { version } }, (result) => reported.push(result));
    const behind = [2, 3].map((node) => ({ node, speaks: NEXT.max }));
    expect(reported).toMatchObject([{ ok: false, reason: 'nodesBehind', behind }]);
    expect(sent).toEqual([]);
  });

  it('is forwarded if the leader knows it', () => {
    const { forwarder, sent } = asking(NEXT);
    forwarder.change(UPGRADE, () => undefined);
    expect(sent).toEqual(['change']);
  });
});

function admission(): Admission {
  return new Admission({ nodeId: 1, incarnation: 'of 1', facts: 'facts', founders: [] });
}

describe('a node that supports less than the version of the cluster', () => {
  it('is accepted before the version is raised, and then refused with a remedy', () => {
    const one = admission();
    expect(one.refusalOf(helloOf(2, THIS))).toBeUndefined();
    expect(one.helloTo(2).speaks).toEqual(NEXT);
    one.update({ ...created().state, clusterVersion: 2 }, []);
    expect(one.refusalOf(helloOf(2, NEXT))).toBeUndefined();
    expect(one.helloTo(2).speaks).toEqual({ min: 2, max: 2 });
    expect(one.refusalOf(helloOf(2, THIS))).toEqual({
      code: 'otherVersion',
      text:
        'node 2 speaks version 1, and node 1 of this cluster 2: start node 2 with a newer quorate, ' +
        'because after `quorate upgrade finish` there is no way back to an older version',
    });
  });

  it('is named as the one to replace, whichever node refuses', () => {
    const { text } = admission().refusalOf(helloOf(2, { min: NEWER, max: NEWER + 1 })) ?? {};
    expect(text).toContain(
      `node 1 speaks version 1 to 2, and node 2 of this cluster ${NEWER} to ${NEWER + 1}: start node 1 with`,
    );
  });
});
