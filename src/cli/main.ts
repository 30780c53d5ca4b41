#!/usr/bin/env node
/** The `quorate` command as a process. */
import module from 'node:module';

// Node 22 and later keep what they have compiled: the next start of a node, or of a command, need not do it again.
(module as { readonly enableCompileCache?: () => unknown }).enableCompileCache?.();
const [{ packageVersion, runCommand }, { quorateProgram }] = await Promise.all([
  import('./command-line.ts'),
  import('./program.ts'),
]);

await runCommand(quorateProgram(packageVersion()));
