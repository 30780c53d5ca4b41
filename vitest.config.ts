import { defineConfig } from 'vitest/config';

/** A hang must end at some time. Nothing is called wrong for being slow: the machine may have other things to do. */
const HANGS_MILLIS = 300_000;

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: HANGS_MILLIS,
    hookTimeout: HANGS_MILLIS,
    teardownTimeout: HANGS_MILLIS,
  },
});
