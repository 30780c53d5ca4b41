/**
 * A whole run of one seed: first faults are active and every check must hold, then the healed cluster must make
 * progress.
 */
import { spawnSync } from 'node:child_process';
import type { Hash32 } from '../../src/partition/hash.ts';
import type { Seams } from './node-world.ts';
import type { Theme } from './features.ts';
import { type Say, wordsOfEnd } from './story.ts';
import { Recovery } from './recovery.ts';
import { World } from './world.ts';

export interface RunResult {
  readonly seed: number;
  readonly hash: string;
  readonly steps: number;
  readonly simulatedMillis: number;
  readonly requests: number;
  readonly grants: number;
  readonly denials: number;
  /** No rule applied. */
  readonly unlimited: number;
  readonly unavailable: number;
  /** Those that failed because the state was full. */
  readonly atCapacity: number;
  /** Refused because another request has their id. */
  readonly conflicts: number;
  readonly faults: ReadonlyMap<string, number>;
  readonly coverage: ReadonlyMap<string, number>;
  readonly violation: string | undefined;
}

export interface RunInit {
  readonly seed: number;
  readonly hash: Hash32;
  /** Absent: the seed draws all of the world. */
  readonly theme?: Theme | undefined;
  readonly seams?: Seams | undefined;
  readonly say?: Say | undefined;
}

export async function runSeed(init: RunInit): Promise<RunResult> {
  const world = new World(init);
  const { settings, story, clients, described } = world;
  story.report(() => `seed ${init.seed}: ${JSON.stringify(settings)}`);
  world.after(settings.safetyMillis, () => new Recovery(world).start());
  let violation: string | undefined;
  try {
    await world.run();
  } catch (error) {
    violation = wordsOfEnd(error);
    story.report(() => `VIOLATION: ${violation ?? ''}`);
  }
  const sum = (count: 'requests' | 'grants' | 'denials' | 'unavailable' | 'conflicts'): number =>
    clients[count] + (described?.clients[count] ?? 0);
  return {
    seed: init.seed,
    hash: story.hash,
    steps: story.steps,
    simulatedMillis: story.elapsed,
    requests: sum('requests'),
    grants: sum('grants'),
    denials: sum('denials'),
    unlimited: described?.clients.unlimited ?? 0,
    unavailable: sum('unavailable'),
    atCapacity: clients.atCapacity,
    conflicts: sum('conflicts'),
    faults: story.faults,
    coverage: story.coverage,
    violation,
  };
}

/** The command that repeats a run. A seed means the same only on the same commit. */
export function replayOf(seed: number, { kind, features = [], faults = [] }: Theme = {}): string {
  const world = kind === undefined ? '' : ` --world ${kind}`;
  const wanted = features.length === 0 ? '' : ` --with ${features.join()}`;
  const broken = faults.length === 0 ? '' : ` --break ${faults.join()}`;
  const command = `npm run sim -- --seed ${seed} --seeds 1${world}${wanted}${broken} --trace`;
  const { status, stdout } = spawnSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' });
  return status === 0 ? `${command}   (commit ${stdout.trim()})` : command;
}
