/**
 * Measures how long the event loop of a whole node with one partition is blocked, including its driver, router and
 * database. A turn is one pass of the event loop, and its full length counts. The requests come from the same process:
 * while the state grows, as fast as the node takes them; then at a steady pace, first alone and then beside each kind
 * of work. The work costs what it adds to the row of the steady pace alone.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn, setTimeout } from 'node:timers/promises';
import { factsDigest, factsOf } from '../src/config/cluster-facts.ts';
import { validateConfig } from '../src/config/config.ts';
import { Admission } from '../src/meta/admission.ts';
import { NodeCore } from '../src/node/node-core.ts';
import { loadHash32 } from '../src/partition/hash.ts';
import { groupOfPartition } from '../src/partition/placement.ts';
import { bootstrapStore } from '../storage/bootstrap-store.ts';
import { openStore } from '../storage/open-store.ts';

const INCARNATION = '0'.repeat(32);
const REQUESTS_PER_TURN = 64;
const OPEN_MAX = 4_096;
const MEBIBYTE = 1 << 20;
const HOUR_MILLIS = 3_600_000;
/** Rate of the steady pace. */
const PER_SECOND = 2_000;
const ALONE_MILLIS = 10_000;
const SNAPSHOTS = 3;
const RULE_CHANGES = 20;
/** Users that keep sending requests while the others are forgotten. */
const KEPT_USERS = 10_000;
/** Shorter turns are not recorded: they only watch the loop. */
const TURN_MILLIS_MIN = 0.1;

/** Called with the length of each turn. */
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
    requestIdHorizonMillis: HOUR_MILLIS,
    partitionBytesMax: 4 * 2 ** 30,
    rules: [{ id: 'default', limit: 1_000, windowMillis: HOUR_MILLIS, clock: 'cluster' }],
  },
});

interface RunningNode {
  readonly core: NodeCore;
  /** Advances all clocks of the node at once. */
  skip(millis: number): void;
  close(): Promise<void>;
}

async function start(directory: string): Promise<RunningNode> {
  const facts = factsOf(config);
  const store = await openStore(directory, { nodeId: 1, facts });
  let skippedMillis = 0;
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
    clocks: {
      monotonicMillis: () => performance.now() + skippedMillis,
      wallMillis: () => Date.now() + skippedMillis,
    },
    listenerMillis: () => performance.now() + skippedMillis,
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
    skip: (millis) => {
      skippedMillis += millis;
    },
    async close() {
      clearInterval(ticks);
      core.raft.stop();
      await store.close();
    },
  };
}

/** Records the turns of the loop while `work` runs. */
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

/** Requests a grant for each user from `from` up to `to`. */
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

/** Requests grants for known users at the steady pace while `work` runs. */
async function paced<T>(core: NodeCore, users: number, taken: TurnTaken, work: Promise<T>): Promise<T> {
  let isDone = false;
  let asked = 0;
  const startedAt = performance.now();
  const pace = async (): Promise<void> => {
    while (!isDone) {
      for (const due = ((performance.now() - startedAt) / 1_000) * PER_SECOND; asked < due; asked += 1)
        core.ask({ userId: `user-${(asked * 7_919) % users}` }, () => undefined);
      await setTimeout(1);
    }
  };
  const pacing = pace();
  try {
    return await watched(taken, work);
  } finally {
    isDone = true;
    await pacing;
  }
}

async function snapshots({ raft }: NodeCore): Promise<void> {
  for (let i = 0; i < SNAPSHOTS; i += 1) {
    const isTaken = await new Promise((resolve) =>
      raft.currentSnapshot(groupOfPartition(0), (meta) => resolve(meta !== undefined)),
    );
    if (isTaken !== true) throw new Error('no snapshot was taken');
    raft.releaseSnapshot(groupOfPartition(0));
    await setTimeout(100);
  }
}

async function ruleChanges({ rules }: NodeCore): Promise<void> {
  for (let i = 0; i < RULE_CHANGES; i += 1) {
    const table = { rules: [{ id: 'default', limit: 900 + i, windowMillis: HOUR_MILLIS, clock: 'cluster' }] };
    const { ok } = await new Promise<{ ok: boolean }>((resolve) =>
      rules.change({ table, ifVersion: undefined }, resolve),
    );
    if (!ok) throw new Error('a change of the rules was refused');
  }
}

/**
 * Makes all users idle at once, and measures how they are forgotten: by requests on the way, or by sweeps without
 * requests.
 */
async function evictions(core: NodeCore): Promise<void> {
  const keys = (): number => [...core.partitions.values()][0]?.stats().keys ?? 0;
  const before = keys();
  await setTimeout(ALONE_MILLIS);
  if (keys() >= before) throw new Error('no user was forgotten');
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
    await phase('node: 2,000 grants/s alone', (taken) =>
      paced(first.core, users, taken, setTimeout(ALONE_MILLIS)),
    );
    await phase('node: beside snapshots', (taken) => paced(first.core, users, taken, snapshots(first.core)));
    await phase('node: beside changes of rules', (taken) =>
      paced(first.core, users, taken, ruleChanges(first.core)),
    );
    await first.close();
    let second: RunningNode | undefined;
    await phase('node: restart', async (taken) => {
      second = await watched(taken, start(directory));
      await untilReady(second.core);
    });
    if (second === undefined) return;
    const { core } = second;
    second.skip(3 * HOUR_MILLIS);
    await phase('node: beside evictions', (taken) => paced(core, KEPT_USERS, taken, evictions(core)));
    // Less than the state holds now.
    core.limitState(MEBIBYTE);
    await phase('node: evictions by sweeps', (taken) => watched(taken, evictions(core)));
    await second.close();
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
