/**
 * The frames that list groups under a version of the node list: `settled` lists groups that have all their wanted
 * members, `offers` those that the sender would hold a replica of.
 */
import type { GroupId } from '../../raft/types.ts';
import { Fields, pack, unpack } from './fields.ts';

/** Groups, and the version of the node list that they refer to. */
export interface GroupsOfVersion {
  readonly version: number;
  readonly groups: readonly GroupId[];
}

/** Encodes the list. */
export function encodeGroupsOfVersion({ version, groups }: GroupsOfVersion): Buffer {
  return pack([version, groups]);
}

/** Decodes the list. @throws FrameError if it is malformed */
export function decodeGroupsOfVersion(payload: Uint8Array): GroupsOfVersion {
  const fields = new Fields(unpack(payload));
  return { version: fields.integer('version'), groups: fields.integers('groups') };
}
