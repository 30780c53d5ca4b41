#!/usr/bin/env node
/** Runs the `quorate` command. */
import module from 'node:module';

// Node 22 and later keep compiled code on disk, so that the next start is faster.
(module as { readonly enableCompileCache?: () => unknown }).enableCompileCache?.();
const [{ packageVersion, runCommand }, { quorateProgram }] = await Promise.all([
  import('./command-line.ts'),
  import('./program.ts'),
]);

await runCommand(quorateProgram(packageVersion()));
