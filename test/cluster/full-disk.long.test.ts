/** Tests real processes with a full disk: they stop or give up leading, and nothing acknowledged is lost. */
import { spawnSync } from 'node:child_process';
import { cpSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually, temporaryDirectory, TestCluster } from './harness.ts';

/** Longer than the test takes on any machine, so that grants count and stay remembered until its end. */
const LONG_MILLIS = 3_600_000;
const RULE = { id: 'default', limit: 100, windowMillis: LONG_MILLIS, clock: 'request' } as const;
const CLIENTS = 32;

const EXIT_FATAL = 70;

describe('a real process whose disk is full', () => {
  let cluster: TestCluster;
  afterEach(async () => {
    await cluster.stop();
  });

  /** Grants to new users until node 1 ends; returns the acknowledged grants, and how node 1 ended. */
  async function grantUntilNodeOneEnds(): Promise<{ acknowledged: string[]; code: number | null }> {
    const acknowledged: string[] = [];
    let ended = false;
    const exited = cluster.exitOf(1).then((exit) => {
      ended = true;
      return exit;
    });
    const clients = Array.from({ length: CLIENTS }, async (_, client) => {
      for (let i = 0; !ended; i += 1) {
        // Long keys, so that little load writes much.
        const userId = `${client}-${i}-`.padEnd(250, 'x');
        const { status } = await cluster
          .allow(2 + (i % 2), { userId, requestId: 'once' })
          .catch(() => ({ status: 0 }));
        if (status === 200) acknowledged.push(userId);
      }
    });
    const { code } = await exited;
    await Promise.all(clients);
    return { acknowledged, code };
  }

  /** Remaining grants after a request, which is repeated with its id until it is decided. */
  function decided(userId: string, requestId: string): Promise<number> {
    return eventually('a decision', async () => {
      const { status, body } = await cluster.allow(2, { userId, requestId });
      return status === 200 ? body.remaining : undefined;
    });
  }

  async function expectAllRemembered(acknowledged: readonly string[]): Promise<void> {
    expect(acknowledged.length).toBeGreaterThan(100);
    const clients = Array.from({ length: CLIENTS }, async (_, client) => {
      for (let i = client; i < acknowledged.length; i += CLIENTS) {
        const userId = acknowledged[i] ?? '';
        // A new request would leave 99 too, but only the first answer to this id leaves the user's next one at 98.
        const again = await decided(userId, 'once');
        const next = await decided(userId, 'twice');
        expect([again, next]).toEqual([99, 98]);
      }
    });
    await Promise.all(clients);
  }

  it('exits at the first refused write, and nothing acknowledged is lost', async () => {
    cluster = await TestCluster.create({ rules: [RULE], partitions: 4, requestIdHorizonMillis: LONG_MILLIS });
    // A limit on file sizes needs no privileges, and an append fails half way, just as on a full disk.
    const first = cluster.startNode(1, (command) => [
      'bash',
      '-c',
      `trap '' XFSZ; ulimit -f 256; exec "$@"`,
      'node',
      ...command,
    ]);
    cluster.startNode(2);
    cluster.startNode(3);
    await cluster.ready();
    const { acknowledged, code } = await grantUntilNodeOneEnds();
    expect(code).toBe(EXIT_FATAL);
    expect(first.lastWords()).toMatch(/^node 1 stops: a write to the database failed: /);
    await expectAllRemembered(acknowledged);
    // With room again the node starts on the same disk: no synced write is missing.
    cluster.startNode(1);
    await cluster.ready();
  });

  const isRoot = process.getuid?.() === 0;
  if (!isRoot) console.log('skipped: a file system that really is full (needs root to mount a small tmpfs)');

  it.skipIf(!isRoot)(
    'exits on a file system without space, and lets others lead below the floor',
    async () => {
      const freeFloorBytes = 1 << 20;
      const requestIdHorizonMillis = LONG_MILLIS;
      cluster = await TestCluster.create({
        rules: [RULE],
        partitions: 4,
        freeFloorBytes,
        requestIdHorizonMillis,
      });
      const mount = await temporaryDirectory();
      const database = join(cluster.directory, 'node-1');
      const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', mount]);
      if (mounted.status !== 0) {
        console.log(`skipped: cannot mount a tmpfs here (${mounted.stderr.toString().trim()})`);
        return;
      }
      try {
        cpSync(database, join(mount, 'node-1'), { recursive: true });
        rmSync(database, { recursive: true });
        symlinkSync(join(mount, 'node-1'), database);
        for (const id of cluster.ids) cluster.startNode(id);
        await cluster.ready();
        // Leaves less free space than the floor: node 1 proposes nothing any more and lets the others lead.
        const ballast = join(mount, 'ballast');
        fill(ballast, freeFloorBytes / 2);
        await eventually('node 1 leads nothing', async () => {
          const { partitions } = await cluster.status();
          return partitions.every(({ leader }) => leader === 2 || leader === 3) ? true : undefined;
        });
        for (let i = 0; i < 20; i += 1) {
          expect((await cluster.allow(1, { userId: `low-${i}` })).status).toBe(200);
        }
        // Followers still have to write what others propose, until there is no space at all.
        const { acknowledged, code } = await grantUntilNodeOneEnds();
        expect(code).toBe(EXIT_FATAL);
        await expectAllRemembered(acknowledged);
      } finally {
        // End the process before its file system is unmounted.
        await cluster.stop();
        spawnSync('umount', [mount]);
        rmSync(mount, { recursive: true });
      }
    },
  );
});

/** Writes a file that leaves `remainingBytes` on its file system. */
function fill(path: string, remainingBytes: number): void {
  const df = spawnSync('df', ['--output=avail', '-B1', path.slice(0, path.lastIndexOf('/'))]);
  const free = Number(df.stdout.toString().trim().split('\n')[1]);
  writeFileSync(path, Buffer.alloc(Math.max(0, free - remainingBytes)));
}
