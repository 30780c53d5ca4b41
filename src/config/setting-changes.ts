/**
 * What changes from one configuration of a node to another, field by field, and which of it a running node takes over. Pure: it reads
 * no file and applies nothing.
 */
import { type ClusterConfig, ConfigError } from './config.ts';
import { HTTP_SETTINGS_DEFAULTS } from './http-settings.ts';
import { RLS_SETTINGS_DEFAULTS } from '../rls/rls-settings.ts';

/** What a node takes over while it runs; everything else is read when it starts. */
export const LIVE_SETTINGS = [
  'logLevel',
  'http',
  'rls',
  'freeFloorBytes',
  'stateBytesMax',
] as const satisfies readonly (keyof ClusterConfig)[];
type LiveSetting = (typeof LIVE_SETTINGS)[number];

/** Fixed for good: no node starts with others (cluster-facts.ts). */
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

export interface LiveChange {
  /** As `http.userHeader`. */
  readonly field: string;
  /** Undefined: the default. */
  readonly from: unknown;
  readonly to: unknown;
}

export interface SettingChanges {
  /** In force as soon as the node takes them over. */
  readonly live: readonly LiveChange[];
  /** The fields that wait for a restart. Their values may be secrets, or long. */
  readonly atStart: readonly string[];
}

/** @throws ConfigError naming a fact of the cluster that is another */
export function settingChanges(before: ClusterConfig, after: ClusterConfig): SettingChanges {
  for (const fact of FACTS)
    if (!isSame(before[fact], after[fact]))
      throw new ConfigError(fact, 'is fixed for good, and is another than this cluster has');
  const [was, is] = [withDefaults(before), withDefaults(after)];
  return {
    live: LIVE_SETTINGS.flatMap((name) => fieldChanges(name, was[name], is[name])),
    atStart: AT_START.flatMap((name) => fieldChanges(name, before[name], after[name])).map(
      ({ field }) => field,
    ),
  };
}

/** The configuration that a node runs by, once it has taken over what it can of `after`. */
export function withLive(before: ClusterConfig, after: ClusterConfig): ClusterConfig {
  const live = Object.fromEntries(LIVE_SETTINGS.map((name) => [name, after[name]]));
  const kept = Object.entries({ ...before, ...live }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(kept) as unknown as ClusterConfig;
}

function withDefaults({ http, rls, ...config }: ClusterConfig): Pick<ClusterConfig, LiveSetting> {
  return { ...config, http: http ?? HTTP_SETTINGS_DEFAULTS, rls: rls ?? RLS_SETTINGS_DEFAULTS };
}

/** One level deep: what a setting is made of changes for itself. */
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
