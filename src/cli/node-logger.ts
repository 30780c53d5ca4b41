/** The log of a node: lines for people on a terminal, JSON elsewhere, for whatever collects it. It decides nothing about what is logged. */
import { isatty } from 'node:tty';
import { type Logger, pino } from 'pino';

export const LOG_FORMATS = ['auto', 'pretty', 'json'] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

const STDOUT = 1;

interface LoggerOptions {
  readonly level: string;
  /** `auto`: by whether standard output is a terminal. */
  readonly format: LogFormat;
  readonly nodeId: number;
}

export async function openLogger({ level, format, nodeId }: LoggerOptions): Promise<Logger> {
  const options = { level, base: { node: nodeId } };
  const isPretty = format === 'pretty' || (format === 'auto' && isatty(STDOUT));
  if (!isPretty) return pino(options);
  // A terminal that is closed sends SIGHUP, which does not end a node: that nobody reads on does, as it should at a terminal.
  process.stdout.on('error', () => process.kill(process.pid, 'SIGTERM'));
  // Not its stream: what that holds back is lost when the process exits.
  const { prettyFactory } = await import('pino-pretty');
  const toText = prettyFactory({ translateTime: 'SYS:HH:MM:ss.l', singleLine: true });
  return pino(options, { write: (line: string) => process.stdout.write(toText(line)) });
}
