/** The options of a client: their types, defaults and bounds, and the check of them. */
import { isBoundedInteger } from '../api/bounded.ts';
import { InvalidOptionError } from './errors.ts';
import type { ClientEvent } from './events.ts';
import { checkTls, type ClientTls } from './tls-options.ts';

/**
 * The limit of the fail mode `local`: this process alone grants up to `limit` per key in any window of `windowMillis`.
 */
export interface LocalFraction {
  readonly mode: 'local';
  /** 1 to 10,000. */
  readonly limit: number;
  /** 1 to 31 days. */
  readonly windowMillis: number;
}

/**
 * What `allow` answers if the cluster was not reached, or could not decide, before the deadline:
 * - `closed`: it throws. Limits are never exceeded.
 * - `open`: it allows everything. **There is no limit meanwhile.**
 * - a `LocalFraction`: this process allows that much per key, in addition to what the cluster granted.
 */
export type FailMode = 'closed' | 'open' | LocalFraction;

/** The options of a `QuorateClient`. Only `nodes` is required. */
export interface ClientOptions {
  /** 1 to 64 HTTP listeners of the cluster, as `http://host:port` or `https://host:port`, all with the same scheme. */
  readonly nodes: readonly string[];
  /**
   * A token with the role `decide`, if the cluster requires tokens. It is sent to every node that the cluster names.
   */
  readonly token?: string;
  readonly tls?: ClientTls;
  /**
   * Longest time until a request is answered, with all its retries: 10 to 60,000, default 3,000. At most half of
   * `requestIdHorizonMillis`.
   */
  readonly deadlineMillis?: number;
  /**
   * How long the cluster remembers request ids: 20 to 86,400,000, default 120,000. Set it if the rules of the cluster
   * have another value. A request is repeated under its id for half of that time; later it might be counted twice.
   */
  readonly requestIdHorizonMillis?: number;
  /**
   * Longest time until one node has answered: 10 to 60,000, default 1,500. A node itself gives up earlier than that.
   */
  readonly attemptMillis?: number;
  /** Draw an id for each request that has none, so that it can be repeated. Default true. */
  readonly requestIds?: boolean;
  /**
   * Send requests to the leaders of their partitions. Default true. Use false behind a load balancer, or if clients
   * reach the nodes at other addresses.
   */
  readonly direct?: boolean;
  /** The answer if the cluster cannot decide. Default `closed`. */
  readonly failMode?: FailMode;
  /** Largest number of open requests: 1 to 1,000,000, default 10,000. One more throws `OverloadedError`. */
  readonly openRequestsMax?: number;
  /**
   * Largest number of waiting `waitForPermit` calls: 1 to 1,000,000, default 10,000. One more throws `OverloadedError`.
   */
  readonly waitersMax?: number;
  /** Batches in flight to one node: 1 to 64, default 4. */
  readonly batchesPerNodeMax?: number;
  /** Requests in one batch: 1 to 1,000, default 1,000. */
  readonly batchMax?: number;
  /**
   * Number of denials to remember until their `retryAfterMillis`: 0 to 1,000,000, default 10,000. The oldest is dropped
   * first.
   */
  readonly deniedMax?: number;
  /**
   * Longest time to remember a denial, since a refund or a reset may end it early: 0 to 86,400,000, default 60,000. If
   * a request has more descriptors than its user, a second at most.
   */
  readonly deniedMillisMax?: number;
  /**
   * Called for each event, for metrics. An error that it throws changes nothing; the first one is a process warning.
   */
  readonly onEvent?: (event: ClientEvent) => void;
}

type WithoutDefault = 'token' | 'tls' | 'onEvent';
/** Checked options with defaults filled in. */
export type Settings = Required<Omit<ClientOptions, WithoutDefault>> & {
  readonly [Name in WithoutDefault]: ClientOptions[Name] | undefined;
};

const KEYS: readonly (keyof ClientOptions)[] = [
  'nodes',
  'token',
  'tls',
  'deadlineMillis',
  'requestIdHorizonMillis',
  'attemptMillis',
  'requestIds',
  'direct',
  'failMode',
  'openRequestsMax',
  'waitersMax',
  'batchesPerNodeMax',
  'batchMax',
  'deniedMax',
  'deniedMillisMax',
  'onEvent',
];
const NODES_MAX = 64;
const LOCAL_LIMIT_MAX = 10_000;
const WINDOW_MILLIS_MAX = 2_678_400_000;
const MINUTE_MILLIS = 60_000;
const DAY_MILLIS = 86_400_000;
const MILLION = 1_000_000;

/**
 * Checks options and fills in defaults.
 *
 * @throws InvalidOptionError for the first wrong option, with its bounds
 */
export function settingsOf(options: ClientOptions): Settings {
  const unknown = Object.keys(options).find((key) => !(KEYS as readonly string[]).includes(key));
  if (unknown !== undefined)
    throw new InvalidOptionError(unknown, `is not known; known are ${KEYS.join(', ')}`);
  const { token, tls, onEvent, requestIds = true, direct = true, failMode = 'closed' } = options;
  const integer = (name: keyof ClientOptions, usual: number, min: number, max: number): number => {
    const value = options[name] ?? usual;
    if (!isBoundedInteger(value, min, max))
      throw new InvalidOptionError(name, `must be an integer from ${min} to ${max}`);
    return value;
  };
  if (typeof requestIds !== 'boolean') throw new InvalidOptionError('requestIds', 'must be true or false');
  if (onEvent !== undefined && typeof onEvent !== 'function')
    throw new InvalidOptionError('onEvent', 'must be a function');
  if (typeof direct !== 'boolean') throw new InvalidOptionError('direct', 'must be true or false');
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
    throw new InvalidOptionError(
      'token',
      'must be text without spaces, as `quorate tokens create` prints it',
    );
  const deadlineMillis = integer('deadlineMillis', 3_000, 10, 60_000);
  const requestIdHorizonMillis = integer('requestIdHorizonMillis', 2 * MINUTE_MILLIS, 20, DAY_MILLIS);
  if (2 * deadlineMillis > requestIdHorizonMillis)
    throw new InvalidOptionError('deadlineMillis', 'must be at most half of requestIdHorizonMillis');
  const nodes = originsOf(options.nodes);
  return {
    nodes,
    token,
    tls: checkTls(tls, nodes),
    onEvent,
    requestIds,
    direct,
    failMode: checkFailMode(failMode),
    deadlineMillis,
    requestIdHorizonMillis,
    attemptMillis: integer('attemptMillis', 1_500, 10, 60_000),
    openRequestsMax: integer('openRequestsMax', 10_000, 1, MILLION),
    waitersMax: integer('waitersMax', 10_000, 1, MILLION),
    batchesPerNodeMax: integer('batchesPerNodeMax', 4, 1, 64),
    batchMax: integer('batchMax', 1_000, 1, 1_000),
    deniedMax: integer('deniedMax', 10_000, 0, MILLION),
    deniedMillisMax: integer('deniedMillisMax', 60_000, 0, DAY_MILLIS),
  };
}

/** Checks a fail mode and returns it. @throws InvalidOptionError */
export function checkFailMode(failMode: FailMode): FailMode {
  if (failMode === 'closed' || failMode === 'open') return failMode;
  if (typeof failMode !== 'object' || failMode?.mode !== 'local')
    throw new InvalidOptionError(
      'failMode',
      "must be 'closed', 'open' or {mode: 'local', limit, windowMillis}",
    );
  if (!isBoundedInteger(failMode.limit, 1, LOCAL_LIMIT_MAX))
    throw new InvalidOptionError('failMode.limit', `must be an integer from 1 to ${LOCAL_LIMIT_MAX}`);
  if (!isBoundedInteger(failMode.windowMillis, 1, WINDOW_MILLIS_MAX))
    throw new InvalidOptionError(
      'failMode.windowMillis',
      `must be an integer from 1 to ${WINDOW_MILLIS_MAX}`,
    );
  return failMode;
}

function originsOf(nodes: unknown): readonly string[] {
  if (!Array.isArray(nodes) || nodes.length === 0 || nodes.length > NODES_MAX)
    throw new InvalidOptionError('nodes', `must be a list of 1 to ${NODES_MAX} URLs`);
  const urls = nodes.map((each: unknown, i) => {
    const url = typeof each === 'string' && URL.canParse(each) ? new URL(each) : undefined;
    const isOrigin = url?.href === `${url?.origin}/` && /^https?:$/.test(url.protocol);
    if (url === undefined || !isOrigin)
      throw new InvalidOptionError(
        `nodes[${i}]`,
        'must be http://host:port or https://host:port, without a path',
      );
    return url;
  });
  if (new Set(urls.map(({ protocol }) => protocol)).size > 1)
    throw new InvalidOptionError('nodes', 'must all be http or all be https');
  return [...new Set(urls.map(({ origin }) => origin))];
}
