#!/usr/bin/env node
// The `quorate` command. In a package it runs the compiled code. In a checkout it compiles first, like `npm start`, so
// that `npx quorate` works in a fresh clone and never runs old code.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const setup = fileURLToPath(new URL('../cluster/setup.mjs', import.meta.url));
if (existsSync(setup)) {
  // Print to standard error only, because standard output belongs to the command.
  const { status } = spawnSync(process.execPath, [setup], { stdio: ['ignore', 2, 2] });
  if (status !== 0) process.exit(status ?? 1);
  process.setSourceMapsEnabled(true);
}
await import('../dist/src/cli/main.js');
