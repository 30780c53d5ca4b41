/** How to repeat a run: a seed means the same only on the same commit. */
import { spawnSync } from 'node:child_process';
import type { Theme } from './features.ts';

export function replayOf(seed: number, { kind, features = [], faults = [] }: Theme = {}): string {
  const world = kind === undefined ? '' : ` --world ${kind}`;
  const wanted = features.length === 0 ? '' : ` --with ${features.join()}`;
  const broken = faults.length === 0 ? '' : ` --break ${faults.join()}`;
  const command = `npm run sim -- --seed ${seed} --seeds 1${world}${wanted}${broken} --trace`;
  const { status, stdout } = spawnSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' });
  return status === 0 ? `${command}   (commit ${stdout.trim()})` : command;
}
