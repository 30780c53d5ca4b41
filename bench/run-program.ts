/** Runs a command of the bench and makes sure that everything it started ends with it. */
import type { Command } from 'commander';
import type { Running } from './running.ts';

const SIGINT_EXIT_CODE = 130;

/** Runs the command. @param running the processes that the command starts */
export function runProgram(program: Command, running: Running): void {
  const endEarly = (): void => {
    console.error('\nbench: ended early; nothing is left running');
    running.endAll();
    process.exit(SIGINT_EXIT_CODE);
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, endEarly);
  program.parseAsync().catch((error: unknown) => {
    console.error(`bench: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  });
}
