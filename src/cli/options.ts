/** Parsers and texts of the command-line options that several commands have. */
import { existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import { addressText, type HostPort, NODE_ID_MAX, readAddress, labelAt } from '../api/node-address.ts';
import { LOCAL_DEFAULTS } from '../config/cluster-directory.ts';
import { NODES_MAX } from '../config/config.ts';
import { BLOCK_MILLIS_MAX } from '../api/customer-record.ts';
import { isBoundedText } from '../api/bounded.ts';
import { InvalidFieldError } from '../api/fields.ts';
import { TOKEN_ID, TOKEN_NAME_BYTES_MAX } from '../api/token.ts';

/** gRPC has the highest ports: base port + 3000 + node id. */
const BASE_PORT_MAX = 65_535 - 3_000 - NODES_MAX;

/** A parser of whole numbers in these bounds. @param unit of the number, for the message, such as `milliseconds` */
export function integerFrom(min: number, max: number, unit?: string): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === '' || !Number.isSafeInteger(value) || value < min || value > max) {
      const bounds = max === Number.MAX_SAFE_INTEGER ? `>= ${min}` : `from ${min} to ${max}`;
      const what = unit === undefined ? 'a whole number' : `a whole number of ${unit}`;
      throw new InvalidArgumentError(`expected ${what} ${bounds}`);
    }
    return value;
  };
}

/** An override of a customer's limit. */
export interface OverrideOption {
  readonly rule: string;
  readonly limit: number;
  readonly burst?: number;
}

/** Parses a whole number from 0 on. */
export const integerOption = integerFrom(0, Number.MAX_SAFE_INTEGER);
/** Parses the base port of a new cluster. */
export const basePortOption = integerFrom(1, BASE_PORT_MAX);

/** Parses `host:port`. */
export function addressOption(text: string): HostPort {
  const address = readAddress(text);
  if (address === undefined)
    throw new InvalidArgumentError('expected host:port, with a port from 1 to 65535');
  return address;
}

/** Parses a directory that exists or can be created. */
export function directoryOption(text: string): string {
  if (text === '') throw new InvalidArgumentError('expected a directory');
  let path = resolve(text);
  while (!existsSync(path)) path = dirname(path);
  if (!statSync(path).isDirectory())
    throw new InvalidArgumentError(`expected a directory, but ${path} is a file`);
  return text;
}

/** Parses `rule=limit` or `rule=limit:burst`, and adds it to those given before. */
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

/** Parses `name=value`, and adds it to those given before. */
export function descriptorOption(
  text: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const [, name, value = ''] = /^([^=]+)=([\s\S]*)$/.exec(text) ?? [];
  if (name === undefined)
    throw new InvalidArgumentError('expected name=value, such as endpoint=/api/reports');
  return { ...before, [name]: value };
}

/** Parses the HTTP address of a node, as `host:port` or as a URL. Returns a URL. */
export function nodeOption(text: string): string {
  if (!text.includes('://')) {
    return `http://${addressText(addressOption(text))}`;
  }
  if (!/^https?:\/\//.test(text) || !URL.canParse(text))
    throw new InvalidArgumentError('expected host:port, or a URL such as http://127.0.0.1:8101');
  return text;
}

/** Parses a zone or host label. */
export function labelOption(text: string): string {
  try {
    return labelAt(text, 'it');
  } catch (error) {
    if (error instanceof InvalidFieldError) throw new InvalidArgumentError(error.message);
    throw error;
  }
}

/** The option `--zone`. */
export const ZONE = [
  '--zone <name>',
  'the zone of the node: a data centre, rack or other unit that fails as a whole',
  labelOption,
] as const;
/** The option `--host`. */
export const HOST = [
  '--host <name>',
  'the machine of the node; copies of a partition go to different machines if possible',
  labelOption,
] as const;
/** The option `--base-port`. */
export const BASE_PORT = [
  '--base-port <n>',
  `HTTP on n+1.., peers on n+1001.., Redis protocol on n+2001.., gRPC on n+3001.. (default: ${LOCAL_DEFAULTS.basePort})`,
  basePortOption,
] as const;
/** The option `--insecure`. */
export const INSECURE = [
  '--insecure',
  'start without TLS and tokens, even on addresses that other machines reach: anybody there can use it or pose as a node',
] as const;
/** Parses the name of a token. */
export function nameOption(text: string): string {
  if (!isBoundedText(text, TOKEN_NAME_BYTES_MAX))
    throw new InvalidArgumentError(`expected text of 1 to ${TOKEN_NAME_BYTES_MAX} bytes`);
  return text;
}

/** The option `--json`. */
export const JSON_OPTION = ['--json', 'print JSON'] as const;
/** Default directory of a cluster. */
export const DATA_DEFAULT = './data';
/** Flags and text of the option `--data`. */
export const DATA_WORDS = ['--data <dir>', 'directory of the cluster, with its cluster.json'] as const;
/** The option `--data` of commands that work in the directory. Commands that ask nodes use `withCluster`. */
export const DATA = [...DATA_WORDS, directoryOption, DATA_DEFAULT] as const;
/** The option `--tls`. */
export const TLS = [
  '--tls',
  'make certificates for all nodes, and speak TLS with peers and clients',
] as const;
/** The option `--http` of a new node. */
export const HTTP = ['--http <host:port>', 'where the node answers HTTP', addressOption] as const;
/** The option `--peer` of a new node. */
export const PEER = ['--peer <host:port>', 'where the other nodes reach it', addressOption] as const;
/** The argument with the id of a node. */
export const NODE_ID = ['<id>', 'the id of a node', integerFrom(1, NODE_ID_MAX)] as const;
/** The argument with a user or another key. */
export const KEY_ID = ['<id>', 'a user, or any key that a limit counts by, such as user=ada'] as const;
/** The argument with the id of a customer. */
export const CUSTOMER_ID = ['<id>', 'a customer, as the descriptor `customer` names it'] as const;
/** The option `--rule`. */
export const RULE = [
  '--rule <rule>',
  'a rule, such as per-user, or one window of it, such as per-user/day',
] as const;
/** The option `--request-id`. */
export const REQUEST_ID = [
  '--request-id <id>',
  'the id of the request: repeated with the same id it is counted once; refunds need it',
] as const;
/** The option `--timeout`. */
export const timeoutOption = ['--timeout <ms>', 'how long to wait, in milliseconds', integerOption] as const;

/** Parses the id of a token. */
export function tokenIdOption(text: string): string {
  if (!TOKEN_ID.test(text))
    throw new InvalidArgumentError(
      'expected 8 lower-case letters and digits, as `quorate tokens list` shows',
    );
  return text;
}

/** The option `--duration` of a block. */
export function durationOption(): Option {
  return new Option(
    '--duration <ms>',
    'how long the block lasts, in milliseconds (default: until it is ended)',
  ).argParser(integerFrom(1, BLOCK_MILLIS_MAX, 'milliseconds'));
}
