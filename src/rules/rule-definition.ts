/**
 * What a rule is as its author means it, whatever format it was written in, and the bound of each of its fields. Plain
 * data: it survives JSON. How it is read, matched or kept by the limiter is not said here.
 */
import type { RuleClock } from '../api/rule.ts';

/** The longest document, in UTF-8 bytes. */
export const DOCUMENT_BYTES_MAX = 1 << 20;
/** The most rules of one document. How many windows a cluster keeps is for `RULES_MAX` of the limiter to say. */
export const DEFINITIONS_MAX = 10_000;
/**
 * The longest id, in UTF-8 bytes. Each window becomes a rule of the limiter: what is left of `RULE_ID_BYTES_MAX` has
 * room to say which.
 */
export const DEFINITION_ID_BYTES_MAX = 96;
/** The longest name of a window, in UTF-8 bytes: with that of its rule and a `/` between them it makes an id of the limiter. */
export const WINDOW_NAME_BYTES_MAX = 31;
/** The longest value, or pattern of values, of a condition or a step. */
export const PATTERN_BYTES_MAX = 256;
export const DOMAIN_BYTES_MAX = 128;
export const CONDITIONS_MAX = 16;
export const KEY_PARTS_MAX = 8;
export const PATH_STEPS_MAX = 16;
export const WINDOWS_MAX = 8;
export const ENDPOINT_COSTS_MAX = 100;
export const REPLACES_MAX = 64;
export const COMMENT_BYTES_MAX = 1_024;
/** Stated priorities are from -this to this. */
export const PRIORITY_MAX = 1_000_000;
/** No address is counted by more bits than it has; 0 bits would be no part of a key. */
export const IPV4_BITS = 32;
export const IPV6_BITS = 128;

/** How long the units are by which limits are stated. A month is 30 days, as everybody's is who counts windows. */
export const UNIT_MILLIS = {
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
  month: 2_592_000_000,
} as const;

export const METERS = ['slidingLog', 'slidingCounter', 'fixedWindow', 'tokenBucket', 'leakyBucket'] as const;
export type MeterName = (typeof METERS)[number];
/** Those that hold more, or less, than a limit. */
export const METERS_WITH_BURST: readonly MeterName[] = ['tokenBucket', 'leakyBucket'];

/** What is answered where the cluster cannot decide: no, yes, or what one node decides alone. */
export const FAIL_MODES = ['closed', 'open', 'local'] as const;
export type FailMode = (typeof FAIL_MODES)[number];

/** Descriptors that the documentation names. Any other is as good. */
export const KNOWN_DESCRIPTORS: readonly string[] = [
  'user',
  'customer',
  'apiKey',
  'ip',
  'tenant',
  'tier',
  'endpoint',
  'method',
];

/** The descriptor has this value; `/api/*` is any that begins so, and `*` any at all. */
export interface Condition {
  readonly name: string;
  /** 1 to `PATTERN_BYTES_MAX` bytes. A `*` at the end is any text, also none; there is no other. */
  readonly value: string;
}

/** One of the descriptors that a rule counts by. */
export interface KeyPart {
  readonly name: string;
  /** Of `ip` only: addresses with these leading bits in common are counted together. */
  readonly bits?: { readonly ipv4: number; readonly ipv6: number };
}

/** One level of nested descriptors. */
export interface PathStep {
  readonly name: string;
  /** Absent: any value. A `*` is any text, also none, wherever it stands. */
  readonly value?: string;
  /** Each value is counted for itself. */
  readonly isCounted: boolean;
}

/** Which requests a rule is for, and which of them it counts together. */
export type Scope =
  | {
      readonly kind: 'descriptors';
      /** All must hold. In order of their names; none: every request. */
      readonly conditions: readonly Condition[];
      /** In order of their names; none: all requests are counted together. */
      readonly key: readonly KeyPart[];
    }
  | {
      /** For descriptors in an order, all of them, as envoyproxy/ratelimit has them. */
      readonly kind: 'path';
      readonly domain: string;
      /** 1 to `PATH_STEPS_MAX`. */
      readonly steps: readonly PathStep[];
    };

export interface LimitWindow {
  /** 1 to `WINDOW_NAME_BYTES_MAX` bytes without a `/`; absent: it is known by its period; empty: see `LIKE_ITS_RULE`. */
  readonly name?: string;
  /** 0 (deny all) to `limitMaxOf` the meter. */
  readonly limit: number;
  /** 1 to `WINDOW_MILLIS_MAX`. */
  readonly windowMillis: number;
}

export interface RuleCost {
  /** 1 to `COST_MAX`: what the cost of a request is multiplied by. */
  readonly otherwise: number;
  /** The same for some endpoints: the most specific pattern counts. In order of the patterns. */
  readonly endpoints: readonly { readonly endpoint: string; readonly cost: number }[];
}

export interface RuleDefinition {
  /** Unique in its document, 1 to `DEFINITION_ID_BYTES_MAX` bytes. Grants belong to it. */
  readonly id: string;
  /** What `replaces` calls it; the id, unless the format has names of its own. */
  readonly name: string;
  readonly scope: Scope;
  /** Of the rules of one group that match a request, the one of the highest priority applies. */
  readonly group: string;
  /** -`PRIORITY_MAX` to `PRIORITY_MAX`; 0 unless it is stated. Among equal ones the more specific applies (specificity.ts). */
  readonly priority: number;
  /**
   * 1 to `WINDOWS_MAX` of different names (window-id.ts), shortest first, those of one length by name: a request is granted in
   * all of them or in none. None if `unlimited`.
   */
  readonly windows: readonly LimitWindow[];
  readonly meter: MeterName;
  /** 1 to `LIMIT_MAX`: what a bucket of the shortest window holds; absent, and for all others, that is the limit. */
  readonly burst?: number;
  readonly cost: RuleCost;
  readonly clock: RuleClock;
  readonly failMode: FailMode;
  /** A rule that is not is as good as absent. */
  readonly enabled: boolean;
  /** It is decided and told, and denies nothing. */
  readonly shadow: boolean;
  /** It applies to requests that ask for it by its id, and to no others; absent: to all that match. */
  readonly named?: true;
  /** Whoever it applies to has no limit. */
  readonly unlimited: boolean;
  /** It is there to have none, and says so nowhere: who asks is told the same as where no rule is. Beside `unlimited`. */
  readonly whitelisted?: true;
  /** Of a path: lists settle their costs under it, so it denies none of them. A list of cost 0 is over the limit while nothing is left. */
  readonly postPaid?: true;
  /** It is no rule, but what the document says of requests that no rule is for: they are denied. */
  readonly unmatched?: true;
  /** The names of rules that do not apply where this one does. */
  readonly replaces: readonly string[];
  readonly comment?: string;
}

/** What rules that count by the same have in common: their group, unless they state one. */
export function keyKind(key: readonly KeyPart[]): string {
  return key.length === 0 ? '*' : key.map(partName).join(',');
}

/** As it is written: `user`, `ip`, `ip/24/64`. */
export function partName({ name, bits }: KeyPart): string {
  if (bits === undefined || (bits.ipv4 === IPV4_BITS && bits.ipv6 === IPV6_BITS)) return name;
  return `${name}/${bits.ipv4}/${bits.ipv6}`;
}
