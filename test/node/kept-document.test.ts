/** Tests that the text of a document, with its comments, is kept until the rules are changed in another way. */
import { describe, expect, it } from 'vitest';
import { metaHash } from '../../src/backup/group-contents.ts';
import type { OneRuleChange, RulesChange } from '../../src/api/rules-change.ts';
import { TIMING_DEFAULTS } from '../../src/config/config.ts';
import type { MetaRecord } from '../../src/meta/cluster-state.ts';
import { decodeMetaCommand, decodeMetaRecord, encodeMeta } from '../../src/meta/meta-form.ts';
import { applyMetaCommand } from '../../src/meta/meta-state.ts';
import { RulesChanges } from '../../src/node/rules-changes.ts';
import { loadHash32 } from '../../src/partition/hash.ts';
import { FIRST_RULES } from '../meta/first-rules.ts';

const hash = await loadHash32();
const DOCUMENT = `# Owned by the payments team. Ask before you raise anything.
rules:
  - id: per-user # žluť
    key: user
    windows: { limit: 10, per: minute }
`;
const OTHER = { limit: 20, per: 'minute' };

function ruleLine(id: string, windows: string): string {
  return `  - { id: ${id}, key: ${id}, windows: ${windows} }\n`;
}

/** The state of group 0, as in its log and its snapshots. */
class GroupZero {
  record: MetaRecord;
  readonly #changes: RulesChanges;

  constructor() {
    const nodes = [{ id: 1, incarnation: 'a' }];
    const create = { type: 'create', nodes, rules: FIRST_RULES, replicas: 1 } as const;
    const { record } = applyMetaCommand(undefined, { ...create, partitions: 1, clusterVersion: 1 }, hash);
    this.record = record ?? expect.fail('nothing was created');
    const state = (): MetaRecord['state'] => this.record.state;
    const meta = {
      get state() {
        return state();
      },
    };
    this.#changes = new RulesChanges({
      core: { partitions: new Map(), meta },
      partitionCount: 1,
      timing: TIMING_DEFAULTS,
      change: (change) => {
        const command = decodeMetaCommand(encodeMeta(change));
        const next = applyMetaCommand(this.record, command, hash).record ?? this.record;
        this.record = decodeMetaRecord([encodeMeta(next)]) ?? next;
      },
    });
  }

  /** @returns the text in force afterwards */
  change(change: Omit<RulesChange, 'table' | 'ifVersion'> & Partial<RulesChange>): string | undefined {
    const { version } = this.record.state.rules;
    this.#changes.change({ table: {}, ifVersion: version, ...change }, () => undefined);
    if (this.record.state.rules.version === version) expect.fail('nothing was changed');
    return this.#changes.inForce?.document;
  }

  changeOne(rule: OneRuleChange): string | undefined {
    return this.change({ rule });
  }
}

describe('the text of a document', () => {
  it('is kept with its rules, including comments', () => {
    expect(new GroupZero().change({ document: DOCUMENT })).toBe(DOCUMENT);
  });

  it('is replaced by that of the next document', () => {
    const group = new GroupZero();
    group.change({ document: DOCUMENT });
    const next = DOCUMENT.replace('limit: 10', 'limit: 11');
    expect(group.change({ document: next })).toBe(next);
  });

  it('is dropped once a table replaces it', () => {
    const group = new GroupZero();
    group.change({ document: DOCUMENT });
    expect(group.change({ table: { rules: FIRST_RULES.rules } })).toBeUndefined();
  });

  it('keeps the text around a rule that is changed alone', () => {
    const group = new GroupZero();
    group.change({ document: DOCUMENT });
    const changed = group.changeOne({ id: 'per-user', body: { key: 'user', windows: OTHER } });
    expect(changed).toMatch(/^# Owned by the payments team[^]*limit: 20/);
    expect(group.changeOne({ id: 'per-ip', body: { key: 'ip', windows: OTHER } })).toMatch(
      /^# Owned by[^]*per-user[^]*per-ip/,
    );
    const without = group.changeOne({ id: 'per-user' });
    expect(without).toMatch(/^# Owned by[^]*per-ip/);
    expect(without).not.toContain('per-user');
  });

  it('is dropped if another rule repeats text of the changed rule by an alias', () => {
    const windows = '[{ limit: 5, per: minute }]';
    const text = `rules:\n${ruleLine('a', `&w ${windows}`)}${ruleLine('b', '*w')}`;
    for (const body of [undefined, { key: 'a', windows: OTHER }]) {
      const group = new GroupZero();
      expect(group.change({ document: text })).toBe(text);
      expect(group.changeOne({ id: 'a', ...(body && { body }) })).toBeUndefined();
      expect(group.record.state.definitions).toContain('"limit":5');
    }
    // Without the second anchor the alias would repeat the first.
    const again = `&w ${windows.replace('5', '7')}`;
    const group = new GroupZero();
    group.change({
      document: `rules:\n${ruleLine('a', `&w ${windows}`)}${ruleLine('b', again)}${ruleLine('c', '*w')}`,
    });
    expect(group.changeOne({ id: 'b' })).toBeUndefined();
    expect(group.record.state.definitions).toMatch(/"limit":5[^]*"limit":7/);
  });

  it('is dropped if the new rule cannot be written into it', () => {
    const group = new GroupZero();
    const limit = '{ unit: minute, requests_per_unit: 5 }';
    group.change({ document: `domain: d\ndescriptors: [{ key: user, rate_limit: ${limit} }]\n` });
    expect(group.changeOne({ id: 'per-user', body: { key: 'user', windows: OTHER } })).toBeUndefined();
  });

  it('is not part of the state hash of a backup', () => {
    const group = new GroupZero();
    group.change({ document: DOCUMENT });
    const { state } = group.record;
    const other = { ...group.record, state: { ...state, document: `${DOCUMENT}# more` } };
    expect(metaHash(other)).toBe(metaHash(group.record));
    const another = { ...group.record, state: { ...state, definitions: '[]' } };
    expect(metaHash(another)).not.toBe(metaHash(group.record));
  });
});
