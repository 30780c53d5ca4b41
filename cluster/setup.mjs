// Prepares a checkout: installs dependencies if the lockfile has changed, compiles, and builds the dashboard if its
// sources have changed. Uses only Node built-ins, because it runs before node_modules exists. With `--no-build` it only
// installs.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const stampFile = join(root, 'node_modules', '.quorate-setup');
/** npm writes this file at the end of an installation. */
const installedFile = join(root, 'node_modules', '.package-lock.json');
const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
const dashboardStampFile = join(root, 'dist', '.dashboard');
const lockDir = join(root, '.setup-lock');
/** Sources of the dashboard: its own folder, and the folders that it imports. */
const DASHBOARD_SOURCES = ['src/dashboard', 'src/api', 'src/rules'];
const LOCK_WAIT_MILLIS_MAX = 300_000;

/** Checks the Node version before newer features are used. */
function checkNode() {
  const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const wanted = engines.node.replace('>=', '');
  const isOlder = process.versions.node.localeCompare(wanted, 'en', { numeric: true }) < 0;
  if (isOlder) throw new Error(`Node ${wanted} or newer is needed, and this is ${process.versions.node}`);
}

function wantedStamp() {
  const lockfile = readFileSync(join(root, 'package-lock.json'));
  const hash = createHash('sha256').update(lockfile).update(process.version).update(process.arch);
  return hash.digest('hex');
}

function isInstalled() {
  // After `npm ci --omit=dev` there is no compiler.
  if (!existsSync(compiler)) return false;
  if (existsSync(stampFile)) return readFileSync(stampFile, 'utf8') === wantedStamp();
  return existsSync(installedFile) && holdsAll(packagesOf(installedFile));
}

function packagesOf(lockfile) {
  return JSON.parse(readFileSync(lockfile, 'utf8')).packages;
}

/**
 * After a plain `npm ci`: returns true if all packages of the lockfile are installed in the right version, except
 * optional ones.
 */
function holdsAll(installed) {
  return Object.entries(packagesOf(join(root, 'package-lock.json'))).every(
    ([path, { version, optional, devOptional }]) =>
      path === '' || optional || devOptional || installed[path]?.version === version,
  );
}

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

function dashboardStamp() {
  const hash = createHash('sha256').update(wantedStamp());
  for (const path of DASHBOARD_SOURCES.flatMap((folder) => filesBelow(join(root, folder))))
    hash.update(`${relative(root, path)}\n`).update(readFileSync(path));
  return hash.digest('hex');
}

/** Builds the dashboard only if its sources have changed, because that takes seconds. */
function maybeBuildDashboard() {
  const stamp = dashboardStamp();
  const isBuilt = existsSync(join(root, 'dist', 'dashboard', 'index.html'));
  if (isBuilt && existsSync(dashboardStampFile) && readFileSync(dashboardStampFile, 'utf8') === stamp) return;
  const vite = join(root, 'node_modules', 'vite', 'bin', 'vite.js');
  run(process.execPath, [vite, 'build', join(root, 'src', 'dashboard'), '--logLevel', 'warn']);
  writeFileSync(dashboardStampFile, stamp);
}

function run(command, args) {
  const result = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  if (result.status !== 0) {
    throw new Error(`\`${command} ${args.join(' ')}\` failed (exit ${result.status ?? result.signal})`);
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/**
 * The lock is a directory, because `mkdir` is atomic. It contains the pid of its holder, so that a lock of a dead
 * process can be taken.
 */
function acquireLock() {
  const deadline = Date.now() + LOCK_WAIT_MILLIS_MAX;
  for (;;) {
    try {
      mkdirSync(lockDir);
      writeFileSync(join(lockDir, 'pid'), String(process.pid));
      return;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    const pidFile = join(lockDir, 'pid');
    const holder = existsSync(pidFile) ? Number(readFileSync(pidFile, 'utf8')) : 0;
    if (holder > 0 && !isAlive(holder)) {
      rmSync(lockDir, { recursive: true, force: true });
      continue;
    }
    if (Date.now() > deadline) {
      throw new Error(`another set-up holds ${lockDir}; remove that folder if none is running`);
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
  }
}

/**
 * Adds our command to the folder where npx searches for commands. Otherwise npx caches, for ever, which commands it found
 * in this folder the first time.
 */
function linkCommand() {
  const link = join(root, 'node_modules', '.bin', 'quorate');
  if (!existsSync(link)) symlinkSync(join('..', '..', 'bin', 'quorate.mjs'), link);
}

/** Removes compiled files without a source, so that a deleted module cannot be imported by accident. */
function removeStaleOutput(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (path === join(root, 'dist', 'dashboard')) continue;
    if (entry.isDirectory()) {
      removeStaleOutput(path);
      continue;
    }
    const source = join(root, relative(join(root, 'dist'), path)).replace(/(\.d\.ts|\.js|\.js\.map)$/, '.ts');
    if (source.endsWith('.ts') && !existsSync(source)) rmSync(path);
  }
}

function main() {
  checkNode();
  const build = !process.argv.includes('--no-build');
  acquireLock();
  try {
    if (!isInstalled()) {
      console.error('quorate: installing dependencies (npm ci)');
      // With NODE_ENV=production npm would not install the compiler.
      run('npm', ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error']);
    }
    writeFileSync(stampFile, wantedStamp());
    linkCommand();
    if (build) {
      // A first compilation takes long, and the compilers print nothing.
      if (!existsSync(join(root, 'dist'))) console.error('quorate: compiling');
      run(process.execPath, [compiler, '-p', root]);
      removeStaleOutput(join(root, 'dist'));
      maybeBuildDashboard();
    }
  } finally {
    rmSync(lockDir, { recursive: true, force: true });
  }
}

try {
  main();
} catch (error) {
  console.error(`quorate: set-up failed: ${error.message}`);
  process.exit(1);
}
