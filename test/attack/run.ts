/** Runs the attacks one after the other, each beside an honest client, and reports what each changed. */
import type { Attack, Outcome } from './attack.ts';
import type { Scale } from './scale.ts';
import { Bystander, type Noticed } from './bystander.ts';
import { FLOODS } from './floods.ts';
import { GRPC } from './grpc.ts';
import { HTTP_BYTES } from './http-bytes.ts';
import { HTTP_CREDENTIALS } from './http-credentials.ts';
import { PEERS } from './peers.ts';
import { RESP } from './resp.ts';
import { Target } from './target.ts';

export const ATTACKS: readonly Attack[] = [
  ...HTTP_CREDENTIALS,
  ...HTTP_BYTES,
  ...RESP,
  ...GRPC,
  ...PEERS,
  ...FLOODS,
];

const REST_MILLIS = 2_000;

export interface Row extends Outcome {
  readonly name: string;
  readonly listener: string;
  readonly millis: number;
  /** A sentence for everything that an attack changed. */
  readonly changed: readonly string[];
  readonly noticed: Noticed;
}

/** Called with each row when it is known. The first row is without an attack. */
export async function runAttacks(
  scale: Scale,
  attacks: readonly Attack[],
  reported: (row: Row) => void,
): Promise<readonly Row[]> {
  const target = await Target.start(scale);
  const rows: Row[] = [];
  const bystander = new Bystander(target);
  bystander.begin();
  try {
    for (const attack of [NOTHING, ...attacks]) {
      const before = await target.facts();
      bystander.noticed();
      const startedAt = performance.now();
      const outcome = await attack.run(target);
      const millis = performance.now() - startedAt;
      // Some attacks end before the honest client has sent a request.
      await bystander.asksAll();
      const noticed = bystander.noticed();
      const changed = await target.changedSince(before);
      const row = { name: attack.name, listener: attack.listener, ...outcome, millis, changed, noticed };
      rows.push(row);
      reported(row);
    }
  } finally {
    await bystander.end();
    await target.stop();
  }
  return rows;
}

const NOTHING: Attack = {
  name: '(nothing)',
  listener: 'http',
  run: async () => {
    await new Promise((resolve) => setTimeout(resolve, REST_MILLIS));
    return { tries: 0, gotIn: [] };
  },
};
