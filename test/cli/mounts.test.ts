/** Tests reading the mount of a directory: its device, file system and the `discard` option. */
import { describe, expect, it } from 'vitest';
import { discardsAtOnce, mountOf } from '../../src/cli/mounts.ts';

const MOUNTINFO = [
  '22 27 0:21 / /proc rw,relatime - proc proc rw',
  '27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard,errors=remount-ro',
  '30 27 254:16 / /data rw,noatime shared:7 master:1 - xfs /dev/vdb rw,attr2,inode64',
  '31 30 254:32 / /data/old rw,relatime - ext4 /dev/vdc rw,discard',
  '32 31 254:48 / /data/old rw,relatime - ext4 /dev/vdd rw',
  String.raw`33 27 254:64 / /my\040disk\134x rw - btrfs /dev/vde rw,discard=async,subvol=/`,
  '34 27 254:80 / /sync rw - btrfs /dev/vdf rw,discard=sync',
  'what no kernel writes',
  '',
].join('\n');

describe('the mount of a directory', () => {
  it.each([
    ['/', '/', 'ext4', '/dev/vda'],
    ['/home/ada', '/', 'ext4', '/dev/vda'],
    ['/data', '/data', 'xfs', '/dev/vdb'],
    ['/data/node-1', '/data', 'xfs', '/dev/vdb'],
    ['/database', '/', 'ext4', '/dev/vda'],
    ['/data/old/node-1', '/data/old', 'ext4', '/dev/vdd'],
    [String.raw`/my disk\x/node-1`, String.raw`/my disk\x`, 'btrfs', '/dev/vde'],
  ])('%s is %s, a %s of %s', (path, point, type, source) => {
    expect(mountOf(path, MOUNTINFO)).toMatchObject({ point, type, source });
  });

  it('is unknown where nothing is mounted', () => {
    expect(mountOf('/data', '')).toBeUndefined();
    expect(mountOf('/data', '27 1 254:0 / / rw,relatime shared:1')).toBeUndefined();
  });

  it.each([
    ['/home', true],
    ['/data', false],
    ['/data/old', false],
    [String.raw`/my disk\x`, false],
    ['/sync', true],
  ])('%s discards at once: %s', (path, expected) => {
    const mount = mountOf(path, MOUNTINFO);
    expect(mount !== undefined && discardsAtOnce(mount)).toBe(expected);
  });
});
