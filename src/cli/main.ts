#!/usr/bin/env node
/** The `quorate` command as a process. */
import { packageVersion, runCommand } from './command-line.ts';
import { quorateProgram } from './program.ts';

await runCommand(quorateProgram(packageVersion()));
