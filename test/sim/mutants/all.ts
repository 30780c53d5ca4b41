/**
 * Known bugs, put into a copy of the product on purpose: the simulator must find them. A mutant whose id begins with M
 * is a fault that another system had.
 */
import { BACKUP } from './backup.ts';
import { BATCHES } from './batches.ts';
import { BREAKER } from './breaker.ts';
import { CLOCK } from './clock.ts';
import { CUSTOMERS } from './customers.ts';
import { DOCUMENTS } from './documents.ts';
import { DRAIN } from './drain.ts';
import { DRIVER } from './driver.ts';
import { DURABILITY } from './durability.ts';
import type { Feature, Theme } from '../features.ts';
import { FAIL_MODES } from './fail-modes.ts';
import { GATEWAYS } from './gateways.ts';
import { GATHERING } from './gathering.ts';
import { JOINT } from './joint.ts';
import { LIMITER } from './limiter.ts';
import { MATCHING } from './matching.ts';
import { MEMBERSHIP } from './membership.ts';
import { MEMORY } from './memory.ts';
import { METERS } from './meters.ts';
import { MOVED_IDS } from './moved-ids.ts';
import type { Mutant } from './mutant.ts';
import { PLACEMENT } from './placement.ts';
import { QUICK_ANSWERS } from './quick-answers.ts';
import { RAFT } from './raft.ts';
import { REQUEST_IDS } from './request-ids.ts';
import { ROUTER } from './router.ts';
import { RULES_VERSION } from './rules-version.ts';
import { SETTLEMENTS } from './settlements.ts';
import { SHEDDING } from './shedding.ts';
import { SNAPSHOTS } from './snapshots.ts';
import { STATED } from './stated.ts';
import { TOKENS } from './tokens.ts';
import { TURNS } from './turns.ts';
import { UPGRADE } from './upgrade.ts';
import { USAGE } from './usage.ts';
import { UTC } from './utc.ts';
import { WINDOWS } from './windows.ts';
import { WIRE } from './wire.ts';

export const MUTANTS_BY_AREA: Readonly<Record<string, readonly Mutant[]>> = {
  clock: CLOCK,
  utc: UTC,
  limiter: LIMITER,
  'quick-answers': QUICK_ANSWERS,
  customers: CUSTOMERS,
  joint: JOINT,
  settlements: SETTLEMENTS,
  'fail-modes': FAIL_MODES,
  batches: BATCHES,
  matching: MATCHING,
  documents: DOCUMENTS,
  gateways: GATEWAYS,
  meters: METERS,
  memory: MEMORY,
  'request-ids': REQUEST_IDS,
  'moved-ids': MOVED_IDS,
  raft: RAFT,
  durability: DURABILITY,
  driver: DRIVER,
  turns: TURNS,
  snapshots: SNAPSHOTS,
  membership: MEMBERSHIP,
  placement: PLACEMENT,
  router: ROUTER,
  breaker: BREAKER,
  shedding: SHEDDING,
  drain: DRAIN,
  gathering: GATHERING,
  upgrade: UPGRADE,
  tokens: TOKENS,
  backup: BACKUP,
  'rules-version': RULES_VERSION,
  usage: USAGE,
  windows: WINDOWS,
  stated: STATED,
  wire: WIRE,
};

export const MUTANTS: readonly Mutant[] = Object.values(MUTANTS_BY_AREA).flat();

const REQUESTS: readonly Feature[] = [
  'costs',
  'ids',
  'reusedIds',
  'repeats',
  'refunds',
  'timestamps',
  'severalLimits',
];

/**
 * The worlds in which bugs of an area show. Worlds without these features and faults cannot find them. A bug in how one
 * request is handled shows as well in a world of three nodes (`small`), at a third of the cost.
 */
const THEME_OF: Readonly<Record<string, Theme>> = {
  clock: {
    features: ['drift', 'wallSkew', 'timestamps'],
    faults: ['wrongClock', 'wallJump', 'crashLeader', 'handOver'],
  },
  utc: {
    kind: 'small',
    features: ['meters', 'costs', 'customers', 'eagerSnapshots'],
    faults: ['crashAll', 'wallJump', 'newRules'],
  },
  limiter: { kind: 'small', features: [...REQUESTS, 'peeks'], faults: ['newRules', 'handOver'] },
  customers: { kind: 'small', features: ['documents', 'customers', 'ids', 'meters'] },
  joint: { kind: 'small', features: REQUESTS },
  settlements: { kind: 'small', features: [...REQUESTS, 'meters', 'customers'] },
  batches: { kind: 'small', features: ['batches', 'ids', 'repeats'] },
  matching: {
    kind: 'small',
    features: ['documents', 'customers', 'ids', 'repeats'],
    faults: ['newRules', 'handOver'],
  },
  meters: { kind: 'small', features: [...REQUESTS, 'meters'], faults: ['newRules', 'crashLeader'] },
  memory: { kind: 'small', features: [...REQUESTS, 'smallStates'] },
  'request-ids': { kind: 'small', features: REQUESTS, faults: ['crashLeader'] },
  'moved-ids': {
    kind: 'small',
    features: ['documents', 'severalLimits', 'ids', 'repeats'],
    faults: ['newRules', 'handOver'],
  },
  raft: {
    features: ['ids', 'repeats'],
    faults: ['huntLeaders', 'isolateLeader', 'oneWay', 'crash', 'pauseLeader'],
  },
  durability: {
    features: ['ids'],
    faults: ['crashAll', 'crashInside', 'crashLoop', 'restoreDirectory', 'huntLeaders'],
  },
  driver: {
    features: ['ids', 'repeats', 'peeks'],
    faults: ['crashLeader', 'handOver', 'pauseLeader', 'isolateLeader', 'slowDisk'],
  },
  snapshots: {
    features: [...REQUESTS, 'eagerSnapshots', 'members'],
    faults: ['crash', 'crashAll', 'loseDirectory'],
  },
  membership: { features: ['members'], faults: ['loseDirectory', 'makeAnew', 'crash'] },
  placement: { features: ['members', 'labels'] },
  router: { features: ['ids', 'repeats'], faults: ['isolate', 'oneWay', 'pause', 'stop', 'crashLeader'] },
  gathering: { features: ['gathering'], faults: ['wrongClock', 'crashLeader'] },
  'rules-version': { kind: 'small', features: REQUESTS, faults: ['newRules', 'handOver'] },
  windows: { kind: 'small', features: ['documents', 'ids', 'costs', 'repeats'] },
  wire: { kind: 'small', features: REQUESTS },
};

/** The worlds that are searched for a mutant. */
export function themeOf(id: string): Theme {
  const [area = ''] =
    Object.entries(MUTANTS_BY_AREA).find(([, list]) => list.some((one) => one.id === id)) ?? [];
  const mutant = mutantOf(id);
  const theme = THEME_OF[area];
  const { world = theme?.kind ?? 'usual', features = theme?.features, faults = theme?.faults } = mutant;
  return { kind: world, features, faults };
}

/** @throws if there is none */
export function mutantOf(id: string): Mutant {
  const mutant = MUTANTS.find((candidate) => candidate.id === id);
  if (mutant === undefined) throw new Error(`there is no mutant ${id}`);
  return mutant;
}
