/**
 * The same question for a whole node with one partition: its driver, router and database. Everything that runs between
 * two turns of the event loop counts, whoever did it. The requests are made in the same process, a few per turn.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { factsDigest, factsOf } from '../src/config/cluster-facts.ts';
import { validateConfig } from '../src/config/config.ts';
import { Admission } from '../src/meta/admission.ts';
import { NodeCore } from '../src/node/node-core.ts';
import { loadHash32 } from '../src/partition/hash.ts';
import { bootstrapStore } from '../storage/bootstrap-store.ts';
import { openStore } from '../storage/open-store.ts';

const INCARNATION = '0'.repeat(32);
const REQUESTS_PER_TURN = 64;
const OPEN_MAX = 4_096;
const HOUR_MILLIS = 3_600_000;
/** Nothing to speak of happens in a shorter turn: the loop goes round and round to be watched. */
const TURN_MILLIS_MIN = 0.1;

/** Told how long each turn of the loop took. */
export type TurnTaken = (millis: number) => void;
type Phase = (name: string, run: (taken: TurnTaken) => Promise<void>) => Promise<void>;

const config = validateConfig({
  clusterId: 'stalls',
  founders: [{ id: 1, incarnation: INCARNATION }],
  nodes: [{ id: 1, http: { host: '127.0.0.1', port: 0 }, peer: { host: '127.0.0.1', port: 0 } }],
  partitions: 1,
  replicas: 1,
  timing: { requestDeadlineMillis: 60_000 },
  rules: {
    version: 1,
    requestIdHorizonMillis: HOUR_MILLIS,
    partitionBytesMax: 4 * 2 ** 30,
    rules: [{ id: 'default', limit: 1_000, windowMillis: HOUR_MILLIS, clock: 'cluster' }],
  },
});

interface RunningNode {
  readonly core: NodeCore;
  close(): Promise<void>;
}

async function start(directory: string): Promise<RunningNode> {
  const facts = factsOf(config);
  const store = await openStore(directory, { nodeId: 1, facts });
  const core = await NodeCore.load({
    config,
    nodeId: 1,
    admission: new Admission({
      nodeId: 1,
      incarnation: INCARNATION,
      facts: factsDigest(facts),
      founders: config.founders,
    }),
    store,
    hash: await loadHash32(),
    clocks: { monotonicMillis: () => performance.now(), wallMillis: () => Date.now() },
    doorMillis: () => performance.now(),
    random: (bound) => Math.floor(Math.random() * bound),
    defer: setImmediate,
    gather: setImmediate,
    send: () => false,
    isConnected: () => false,
    leaderChanged: () => undefined,
    fatal: (error) => {
      throw error;
    },
  });
  const ticks = setInterval(() => core.tick(), config.timing.tickMillis);
  return {
    core,
    async close() {
      clearInterval(ticks);
      core.raft.stop();
      await store.close();
    },
  };
}

/** Watches the loop while `work` goes on. */
async function watched<T>(taken: TurnTaken, work: Promise<T>): Promise<T> {
  let isDone = false;
  void work.finally(() => {
    isDone = true;
  });
  while (!isDone) {
    const before = performance.now();
    await nextTurn();
    const millis = performance.now() - before;
    if (millis >= TURN_MILLIS_MIN) taken(millis);
  }
  return work;
}

/** Grants to users `from` up to `to`. */
async function ask(core: NodeCore, from: number, to: number): Promise<void> {
  let open = 0;
  let refused = 0;
  for (let user = from; user < to || open > 0;) {
    for (let i = 0; i < REQUESTS_PER_TURN && user < to && open < OPEN_MAX; i += 1) {
      open += 1;
      core.ask({ userId: `user-${user}` }, (answer) => {
        open -= 1;
        if (answer.kind !== 'decision' || !answer.decision.allowed) refused += 1;
      });
      user += 1;
    }
    await nextTurn();
  }
  if (refused > 0) throw new Error(`${refused} requests were not granted`);
}

async function untilReady(core: NodeCore): Promise<void> {
  while (!core.isReady) await nextTurn();
}

export async function nodeStalls(users: number, phase: Phase): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'quorate-stalls-'));
  try {
    await bootstrapStore(directory, { nodeId: 1, incarnation: INCARNATION, facts: factsOf(config) });
    const first = await start(directory);
    await untilReady(first.core);
    await phase('node: growth and snapshots', (taken) => watched(taken, ask(first.core, 0, users)));
    await phase('node: grants of known users', (taken) =>
      watched(taken, ask(first.core, 0, Math.min(users, 100_000))),
    );
    await first.close();
    let second: RunningNode | undefined;
    await phase('node: restart', async (taken) => {
      second = await watched(taken, start(directory));
      await untilReady(second.core);
    });
    await second?.close();
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
