/**
 * The name of a node in its certificate: a URI among the subject's alternative names, `quorate:<clusterId>/<nodeId>`, with the
 * cluster id percent-encoded. Writes and reads it; whom to trust is not decided here.
 */
import { NODE_ID_MAX } from '../api/node-address.ts';
import type { NodeId } from '../../raft/types.ts';

export interface NodeName {
  readonly clusterId: string;
  readonly nodeId: NodeId;
}

/** The CAs that are made here begin with it. */
export const AUTHORITY_NAME = 'Quorate CA';
const SCHEME = 'quorate:';
const URI = /^quorate:([^/]+)\/([1-9]\d{0,9})$/;
/** Node writes a name as JSON where it could be mistaken for the separator of two. */
const ONE_NAME = /([^:,]+):("(?:[^"\\]|\\.)*"|[^,]*)(?:, |$)/gy;

export function nodeUri({ clusterId, nodeId }: NodeName): string {
  return `${SCHEME}${encodeURIComponent(clusterId)}/${nodeId}`;
}

/**
 * The one node that a certificate is for; undefined if it names none, several, or what cannot be read.
 *
 * @param alternativeNames as `X509Certificate.subjectAltName` tells them
 */
export function nodeNameIn(alternativeNames: string | undefined): NodeName | undefined {
  const names = [...(alternativeNames ?? '').matchAll(ONE_NAME)];
  const uris = names.flatMap(([, kind, value = '']) =>
    kind === 'URI' && value.startsWith(SCHEME) ? [value] : [],
  );
  const [uri, ...others] = uris;
  const [, clusterId, digits] = URI.exec(uri ?? '') ?? [];
  const nodeId = Number(digits);
  if (clusterId === undefined || others.length > 0 || nodeId > NODE_ID_MAX) return undefined;
  try {
    return { clusterId: decodeURIComponent(clusterId), nodeId };
  } catch {
    return undefined;
  }
}
