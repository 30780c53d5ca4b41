/**
 * The frames about groups under a version of the list of nodes: `settled` says which have the members it wants,
 * `offers` which ones the sender would hold a replica of.
 */
import type { GroupId } from '../../raft/types.ts';
import { Fields, pack, unpack } from './fields.ts';

export interface GroupsOfVersion {
  readonly version: number;
  readonly groups: readonly GroupId[];
}

export function encodeGroupsOfVersion({ version, groups }: GroupsOfVersion): Buffer {
  return pack([version, groups]);
}

/** @throws FrameError if it is malformed */
export function decodeGroupsOfVersion(payload: Uint8Array): GroupsOfVersion {
  const fields = new Fields(unpack(payload));
  return { version: fields.integer('version'), groups: fields.integers('groups') };
}
