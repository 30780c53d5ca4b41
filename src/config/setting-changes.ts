/**
 * Compares two configurations of a node field by field, and says which changes a running node can apply. Pure
 * functions.
 */
import { type ClusterConfig, ConfigError } from './config.ts';
import { HTTP_SETTINGS_DEFAULTS } from './http-settings.ts';
import { RLS_SETTINGS_DEFAULTS } from '../rls/rls-settings.ts';

/** Settings that a running node applies; all others are read when it starts. */
export const LIVE_SETTINGS = [
  'logLevel',
  'http',
  'rls',
  'freeFloorBytes',
  'stateBytesMax',
] as const satisfies readonly (keyof ClusterConfig)[];
type LiveSetting = (typeof LIVE_SETTINGS)[number];

/** Facts of the cluster, which cannot change (cluster-facts.ts). */
const FACTS = [
  'clusterId',
  'founders',
  'partitions',
  'replicas',
] as const satisfies readonly (keyof ClusterConfig)[];
const AT_START = [
  'nodes',
  'rules',
  'timing',
  'snapshotEveryBytes',
  'leaders',
  'tls',
  'tokens',
] as const satisfies readonly (keyof ClusterConfig)[];

/** A change that a running node can apply. */
export interface LiveChange {
  /** Path of the field, such as `http.userHeader`. */
  readonly field: string;
  /** Undefined: the default. */
  readonly from: unknown;
  readonly to: unknown;
}

/** All changes between two configurations. */
export interface SettingChanges {
  /** Changes that the running node applies. */
  readonly live: readonly LiveChange[];
  /** Fields that need a restart. Their values are left out, as they may be secret or long. */
  readonly atStart: readonly string[];
}

/** The changes from `before` to `after`. @throws ConfigError if a fact of the cluster differs */
export function settingChanges(before: ClusterConfig, after: ClusterConfig): SettingChanges {
  for (const fact of FACTS)
    if (!isSame(before[fact], after[fact]))
      throw new ConfigError(fact, 'is fixed for good, and differs from that of this cluster');
  const [was, is] = [withDefaults(before), withDefaults(after)];
  return {
    live: LIVE_SETTINGS.flatMap((name) => fieldChanges(name, was[name], is[name])),
    atStart: AT_START.flatMap((name) => fieldChanges(name, before[name], after[name])).map(
      ({ field }) => field,
    ),
  };
}

/** The configuration that a node runs with after it has applied what it can of `after`. */
export function withLive(before: ClusterConfig, after: ClusterConfig): ClusterConfig {
  const live = Object.fromEntries(LIVE_SETTINGS.map((name) => [name, after[name]]));
  const kept = Object.entries({ ...before, ...live }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(kept) as unknown as ClusterConfig;
}

function withDefaults({ http, rls, ...config }: ClusterConfig): Pick<ClusterConfig, LiveSetting> {
  return { ...config, http: http ?? HTTP_SETTINGS_DEFAULTS, rls: rls ?? RLS_SETTINGS_DEFAULTS };
}

/** Compares one level deep: each member of a setting is a field of its own. */
function fieldChanges(name: string, from: unknown, to: unknown): readonly LiveChange[] {
  if (isSame(from, to)) return [];
  if (!isRecord(from) || !isRecord(to)) return [{ field: name, from, to }];
  return [...new Set([...Object.keys(from), ...Object.keys(to)])]
    .filter((key) => !isSame(from[key], to[key]))
    .map((key) => ({ field: `${name}.${key}`, from: from[key], to: to[key] }));
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
