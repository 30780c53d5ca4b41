/**
 * The definition of a rule, independent of the format it was written in, the allowed range of each field, and the
 * names of its windows. Plain data that survives JSON.
 */
import { RULE_METERS, type RuleClock, type RuleMeter } from '../api/rule.ts';

/** Largest document, in UTF-8 bytes. */
export const DOCUMENT_BYTES_MAX = 1 << 20;
/** The maximum number of rules in one document. The number of windows is bounded by `RULES_MAX` of the limiter. */
export const DEFINITIONS_MAX = 10_000;
/** Longest id, in UTF-8 bytes. It leaves room in `RULE_ID_BYTES_MAX` for the name of the window. */
export const DEFINITION_ID_BYTES_MAX = 96;
/** Longest name of a window, in UTF-8 bytes. With the rule's id and a `/` it forms an id of the limiter. */
export const WINDOW_NAME_BYTES_MAX = 31;
/** Longest value, or pattern of values, in UTF-8 bytes. */
export const PATTERN_BYTES_MAX = 256;
/** Longest domain, in UTF-8 bytes. */
export const DOMAIN_BYTES_MAX = 128;
/** The maximum number of conditions of a rule. */
export const CONDITIONS_MAX = 16;
/** The maximum number of descriptors that a rule counts by. */
export const KEY_PARTS_MAX = 8;
/** Deepest nesting of descriptors. */
export const PATH_STEPS_MAX = 16;
/** The maximum number of windows of a rule. */
export const WINDOWS_MAX = 8;
/** The maximum number of endpoints with a cost of their own in a rule. */
export const ENDPOINT_COSTS_MAX = 100;
/** The maximum number of rules that a rule replaces. */
export const REPLACES_MAX = 64;
/** Longest comment, in UTF-8 bytes. */
export const COMMENT_BYTES_MAX = 1_024;
/** Priorities range from -`PRIORITY_MAX` to `PRIORITY_MAX`. */
export const PRIORITY_MAX = 1_000_000;
/** Bits of an address. A key part counts by 1 to this many of them. */
export const IPV4_BITS = 32;
export const IPV6_BITS = 128;

/** Lengths of the units of time. A month is 30 days. */
export const UNIT_MILLIS = {
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
  month: 2_592_000_000,
} as const;

/** The ways to meter a limit, see src/limiter. */
export const METERS = RULE_METERS;
export type MeterName = RuleMeter;
/** Meters whose `burst` may differ from the limit. */
export const METERS_WITH_BURST: readonly MeterName[] = ['tokenBucket', 'leakyBucket'];

/** The decision when the cluster cannot decide: deny, allow, or decide by this node's fraction of the limit. */
export const FAIL_MODES = ['closed', 'open', 'local'] as const;
export type FailMode = (typeof FAIL_MODES)[number];

/** Descriptors that the documentation names; any other works as well. */
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

/** A condition on one descriptor: an exact value, a prefix such as `/api/*`, or `*` for any value. */
export interface Condition {
  readonly name: string;
  /** 1 to `PATTERN_BYTES_MAX` bytes. Only a `*` at the end is special; it matches any text, including none. */
  readonly value: string;
}

/** A descriptor that a rule counts by. */
export interface KeyPart {
  readonly name: string;
  /** For `ip` only: how many leading bits are compared. Addresses that agree in them are counted together. */
  readonly bits?: { readonly ipv4: number; readonly ipv6: number };
}

/** One level of nested descriptors. */
export interface PathStep {
  readonly name: string;
  /** Absent: any value. A `*` anywhere matches any text, including none. */
  readonly value?: string;
  /** Each value has a budget of its own. */
  readonly isCounted: boolean;
}

/** Which requests a rule applies to, and which of them it counts together. */
export type Scope =
  | {
      readonly kind: 'descriptors';
      /** All must hold. Sorted by name; empty: every request. */
      readonly conditions: readonly Condition[];
      /** Sorted by name; empty: all requests are counted together. */
      readonly key: readonly KeyPart[];
    }
  | {
      /** For a list of descriptors in this order, all of them, as in envoyproxy/ratelimit. */
      readonly kind: 'path';
      readonly domain: string;
      /** 1 to `PATH_STEPS_MAX`. */
      readonly steps: readonly PathStep[];
    };

/** A limit over a period. */
export interface LimitWindow {
  /** 1 to `WINDOW_NAME_BYTES_MAX` bytes without `/`. Absent: named by its period. Empty: see `LIKE_ITS_RULE`. */
  readonly name?: string;
  /** 0 (deny all) to `limitMaxOf` the meter. */
  readonly limit: number;
  /** 1 to `WINDOW_MILLIS_MAX`. */
  readonly windowMillis: number;
}

/** The factor that a rule applies to the cost of a request. */
export interface RuleCost {
  /** 1 to `COST_MAX`. */
  readonly otherwise: number;
  /** Factors for some endpoints; the most specific matching pattern counts. Sorted by pattern. */
  readonly endpoints: readonly { readonly endpoint: string; readonly cost: number }[];
}

/** One rule of a rule set. */
export interface RuleDefinition {
  /** Unique in its document, 1 to `DEFINITION_ID_BYTES_MAX` bytes. Grants are stored under it. */
  readonly id: string;
  /** The name that `replaces` refers to. It is the id, unless the format has separate names. */
  readonly name: string;
  readonly scope: Scope;
  /** If several rules of a group match a request, the one with the highest priority applies. */
  readonly group: string;
  /**
   * -`PRIORITY_MAX` to `PRIORITY_MAX`, default 0. Among equal priorities the more specific rule applies
   * (specificity.ts).
   */
  readonly priority: number;
  /**
   * 1 to `WINDOWS_MAX` with different names (`windowName`), sorted by length, then name. A request is granted in
   * all of them or in none. Empty if `unlimited`.
   */
  readonly windows: readonly LimitWindow[];
  readonly meter: MeterName;
  /**
   * 1 to `LIMIT_MAX`: capacity of the bucket of the shortest window. Absent, and for the other windows: the limit.
   */
  readonly burst?: number;
  readonly cost: RuleCost;
  readonly clock: RuleClock;
  readonly failMode: FailMode;
  /** A disabled rule has no effect. */
  readonly enabled: boolean;
  /** In shadow: the rule is decided and reported, but denies nothing. */
  readonly shadow: boolean;
  /** The rule applies only to requests that ask for it by id. Absent: to all requests that match. */
  readonly named?: true;
  /** Requests that it applies to have no limit. */
  readonly unlimited: boolean;
  /**
   * The rule is unlimited because its level has no limit of its own: it is answered as if no rule matched. Only
   * with `unlimited`.
   */
  readonly whitelisted?: true;
  /**
   * For rules by path: lists settle their costs under the rule, so it denies none of them. A list of cost 0 is over
   * the limit while nothing is left.
   */
  readonly postPaid?: true;
  /** Not a rule, but the setting that requests without a matching rule are denied. */
  readonly unmatched?: true;
  /** Names of rules that do not apply where this one does. */
  readonly replaces: readonly string[];
  readonly comment?: string;
}

/** The default group: rules that count by the same descriptors are in one group. */
export function keyKind(key: readonly KeyPart[]): string {
  return key.length === 0 ? '*' : key.map(partName).join(',');
}

/** The part as it is written: `user`, `ip`, `ip/24/64`. */
export function partName({ name, bits }: KeyPart): string {
  if (bits === undefined || (bits.ipv4 === IPV4_BITS && bits.ipv6 === IPV6_BITS)) return name;
  return `${name}/${bits.ipv4}/${bits.ipv6}`;
}

const UNITS = Object.entries(UNIT_MILLIS);
const MILLIS = /^\d+ms$/;

/** The period as text: `day`, or `90000ms` if it is not a whole unit. */
export function periodOf(windowMillis: number): string {
  return UNITS.find(([, millis]) => millis === windowMillis)?.[0] ?? `${windowMillis}ms`;
}

/** The text is a period. A window must not have a period as its name, unless it is its own. */
export function isPeriod(text: string): boolean {
  return MILLIS.test(text) || UNITS.some(([unit]) => unit === text);
}

/** The name of a window, unique within its rule: the one that the author gave, else the period. */
export function windowName({ name, windowMillis }: LimitWindow): string {
  return name ?? periodOf(windowMillis);
}

/**
 * The name of a window that has the id of its rule: the only window of a rule from a table or stated by a request.
 */
export const LIKE_ITS_RULE = '';

/**
 * The id under which the limiter stores a window, such as `per-user/day`. The part after the last `/` is the
 * window, so the order of windows in a rule does not matter.
 */
export function windowRuleId({ id }: Pick<RuleDefinition, 'id'>, window: LimitWindow): string {
  const name = windowName(window);
  return name === LIKE_ITS_RULE ? id : `${id}/${name}`;
}
