/** Parsers for command-line options. */
import { existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { addressText, type HostPort, NODE_ID_MAX, readAddress } from '../api/node-address.ts';
import { LOCAL_DEFAULTS } from '../config/cluster-directory.ts';
import { NODES_MAX } from '../config/config.ts';
import { BLOCK_MILLIS_MAX } from '../api/customer-record.ts';
import { isBoundedText } from '../api/bounded.ts';
import { InvalidFieldError } from '../api/fields.ts';
import { labelAt } from '../api/node-labels.ts';
import { TOKEN_ID, TOKEN_NAME_BYTES_MAX } from '../api/token.ts';
import { InvalidArgumentError, Option } from 'commander';

/** gRPC has the highest ports: the base port + 3000 + the id of the node. */
const BASE_PORT_MAX = 65_535 - 3_000 - NODES_MAX;

/** A whole number within these bounds. */
export function integerFrom(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === '' || !Number.isSafeInteger(value) || value < min || value > max) {
      const bounds = max === Number.MAX_SAFE_INTEGER ? `>= ${min}` : `from ${min} to ${max}`;
      throw new InvalidArgumentError(`expected a whole number ${bounds}`);
    }
    return value;
  };
}

/** A limit of a customer's own. */
export interface OverrideOption {
  readonly rule: string;
  readonly limit: number;
  readonly burst?: number;
}

export const integerOption = integerFrom(0, Number.MAX_SAFE_INTEGER);
export const basePortOption = integerFrom(1, BASE_PORT_MAX);

export function addressOption(text: string): HostPort {
  const address = readAddress(text);
  if (address === undefined)
    throw new InvalidArgumentError('expected host:port, with a port from 1 to 65535');
  return address;
}

/** A directory, or a path where one can be made. */
export function directoryOption(text: string): string {
  if (text === '') throw new InvalidArgumentError('expected a directory');
  let path = resolve(text);
  while (!existsSync(path)) path = dirname(path);
  if (!statSync(path).isDirectory())
    throw new InvalidArgumentError(`expected a directory, but ${path} is a file`);
  return text;
}

/** `rule=limit` or `rule=limit:burst`, behind those that were given before. */
export function overrideOption(
  text: string,
  before: readonly OverrideOption[] = [],
): readonly OverrideOption[] {
  const [, rule, limit, burst] = /^(.+)=(\d{1,7})(?::(\d{1,7}))?$/.exec(text) ?? [];
  if (rule === undefined || limit === undefined)
    throw new InvalidArgumentError(
      'expected rule=limit or rule=limit:burst, such as per-customer/minute=500:1000',
    );
  const override = { rule, limit: Number(limit), ...(burst !== undefined && { burst: Number(burst) }) };
  return [...before, override];
}

/** `name=value`, beside those that were given before. */
export function descriptorOption(
  text: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const [, name, value = ''] = /^([^=]+)=([\s\S]*)$/.exec(text) ?? [];
  if (name === undefined)
    throw new InvalidArgumentError('expected name=value, such as endpoint=/api/reports');
  return { ...before, [name]: value };
}

/** Where a node answers HTTP, as `host:port` or as a URL. Returns a URL. */
export function nodeOption(text: string): string {
  if (!text.includes('://')) {
    return `http://${addressText(addressOption(text))}`;
  }
  if (!/^https?:\/\//.test(text) || !URL.canParse(text))
    throw new InvalidArgumentError('expected host:port, or a URL such as http://127.0.0.1:8101');
  return text;
}

/** Of where a node stands. */
export function labelOption(text: string): string {
  try {
    return labelAt(text, 'it');
  } catch (error) {
    if (error instanceof InvalidFieldError) throw new InvalidArgumentError(error.message);
    throw error;
  }
}

export const ZONE = [
  '--zone <name>',
  'what fails together around the node: a data centre, rack or zone',
  labelOption,
] as const;
export const HOST = [
  '--host <name>',
  'the machine of the node, which never has two copies if others can',
  labelOption,
] as const;
export const BASE_PORT = [
  '--base-port <n>',
  `HTTP on n+1.., peers on n+1001.., Redis protocol on n+2001.., gRPC on n+3001.. (default: ${LOCAL_DEFAULTS.basePort})`,
  basePortOption,
] as const;
export const INSECURE = [
  '--insecure',
  'listen on addresses that other machines reach without TLS: anybody there can use it or pose as a node',
] as const;
/** Of a token. */
export function nameOption(text: string): string {
  if (!isBoundedText(text, TOKEN_NAME_BYTES_MAX))
    throw new InvalidArgumentError(`expected text of 1 to ${TOKEN_NAME_BYTES_MAX} bytes`);
  return text;
}

/** What several commands take, in the same words everywhere. */
export const JSON_OPTION = ['--json', 'print JSON'] as const;
export const DATA_DEFAULT = './data';
export const DATA_WORDS = ['--data <dir>', 'directory of the cluster, with its cluster.json'] as const;
/** Of a command that does something in it. Commands that ask nodes have `withCluster`. */
export const DATA = [...DATA_WORDS, directoryOption, DATA_DEFAULT] as const;
export const TLS = [
  '--tls',
  'make certificates for all nodes, and speak TLS with peers and clients',
] as const;
export const HTTP = ['--http <host:port>', 'where the node answers HTTP', addressOption] as const;
export const PEER = ['--peer <host:port>', 'where the other nodes reach it', addressOption] as const;
export const NODE_ID = ['<id>', 'the id of a node', integerFrom(1, NODE_ID_MAX)] as const;
export const KEY_ID = ['<id>', 'a user, or any key that a limit counts by, such as user=ada'] as const;
export const CUSTOMER_ID = ['<id>', 'a customer, as the descriptor `customer` names it'] as const;
export const RULE = [
  '--rule <rule>',
  'a rule, such as per-user, or one window of it, such as per-user/day',
] as const;
export const REQUEST_ID = [
  '--request-id <id>',
  'an id of the request: if it is asked again under it, it is counted once, and a refund names it',
] as const;
export const timeoutOption = ['--timeout <ms>', 'how long to wait, in milliseconds', integerOption] as const;

/** Of a token. */
export function tokenIdOption(text: string): string {
  if (!TOKEN_ID.test(text))
    throw new InvalidArgumentError(
      'expected 8 letters in lower case and digits, as `quorate tokens list` shows',
    );
  return text;
}

/** How long a block lasts. */
export function durationOption(): Option {
  return new Option(
    '--duration <ms>',
    'how long the block lasts, in milliseconds (default: until somebody ends it)',
  ).argParser(integerFrom(1, BLOCK_MILLIS_MAX));
}
