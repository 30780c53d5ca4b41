/**
 * Short scripts, repeated with a crash at a sample of their I/O boundaries; `npm run sim -- --crash-points` takes all.
 */
import { describe, expect, test } from 'vitest';
import { loadHash32 } from '../../src/partition/hash.ts';
import { SCRIPTS } from './crash-points/all.ts';
import { enumerateCrashes } from './crash-points/enumerate.ts';
import { underMutant, underSeams } from './crash-points/under-bugs.ts';
import { changedLoads } from './mutants/seams.ts';

const hash = await loadHash32();

describe('a crash at every I/O boundary', () => {
  test.each(SCRIPTS)('$name: nothing is lost, charged twice or left undone', async (script) => {
    const { sample } = script;
    const { points, runs, millisMax, failure } = await enumerateCrashes({ script, hash, sample });
    console.log(
      `${script.name}: ${points.length} boundaries, ${runs} runs of at most ${Math.ceil(millisMax)} simulated ms`,
    );
    expect(failure?.violation, `replay: ${failure?.replay ?? ''}`).toBeUndefined();
    // The number of boundaries differs with every draw. This many show that the script ran.
    expect(points.length).toBeGreaterThan(50);
    expect(runs).toBeGreaterThan(sample / 2);
  });
});

describe('bugs that only a few crashes catch', () => {
  test('mutant M6c in propose, which only a crash shows', async () => {
    const { failure } = await underMutant('M6c', 'propose');
    const at = failure?.crash?.at ?? 0;
    expect(at).toBeGreaterThan(0);
    expect(failure?.replay).toContain(`--crash-points propose --at ${at} --variant`);
  });

  test('in node-leaves: a new process that forgot under which placement it holds its replicas', async () => {
    const forgetful = changedLoads((stored) => ({ ...stored, placement: 0 }));
    const { failure } = await underSeams(forgetful, 'node-leaves');
    expect(failure?.crash).toBeDefined();
    expect(failure?.replay).toContain(`--crash-points node-leaves --at`);
  });

  test('in node-joins: a new process that uses the first members of its group', async () => {
    const forgetful = changedLoads(({ snapshot, ...rest }) =>
      snapshot === undefined ? rest : { ...rest, snapshot: { ...snapshot, voters: [1, 2, 3], learners: [] } },
    );
    const { failure } = await underSeams(forgetful, 'node-joins');
    expect(failure?.crash).toBeDefined();
  });
});
