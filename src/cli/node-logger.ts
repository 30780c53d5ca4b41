/** Creates the logger of a node: readable lines on a terminal, JSON otherwise. */
import { isatty } from 'node:tty';
import { type Logger, pino } from 'pino';

/** Values of `--log-format`. */
export const LOG_FORMATS = ['auto', 'pretty', 'json'] as const;
/** A value of `--log-format`. */
export type LogFormat = (typeof LOG_FORMATS)[number];

const STDOUT = 1;

interface LoggerOptions {
  readonly level: string;
  /** `auto`: readable if standard output is a terminal, otherwise JSON. */
  readonly format: LogFormat;
  readonly nodeId: number;
}

/** Creates the logger. */
export async function openLogger({ level, format, nodeId }: LoggerOptions): Promise<Logger> {
  const options = { level, base: { node: nodeId } };
  const isPretty = format === 'pretty' || (format === 'auto' && isatty(STDOUT));
  if (!isPretty) return pino(options);
  // Closing a terminal sends SIGHUP, which makes a node reload its configuration. So the node stops when its output
  // cannot be written any more.
  process.stdout.on('error', () => process.kill(process.pid, 'SIGTERM'));
  // Write directly: the stream of pino-pretty loses buffered lines when the process exits.
  const { prettyFactory } = await import('pino-pretty');
  const toText = prettyFactory({ translateTime: 'SYS:HH:MM:ss.l', singleLine: true });
  return pino(options, { write: (line: string) => process.stdout.write(toText(line)) });
}
