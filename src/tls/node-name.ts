/**
 * The name of a node in its certificate: a URI among the subject's alternative names, `quorate:<clusterId>/<nodeId>`,
 * with the cluster id percent-encoded. This file formats and parses it; it does not decide whom to trust.
 */
import { NODE_ID_MAX } from '../api/node-address.ts';
import type { NodeId } from '../../raft/types.ts';

/** The node that a certificate is for. */
export interface NodeName {
  readonly clusterId: string;
  readonly nodeId: NodeId;
}

/** The names of CAs that are created here begin with this. */
export const AUTHORITY_NAME = 'Quorate CA';
const SCHEME = 'quorate:';
const URI = /^quorate:([^/]+)\/([1-9]\d{0,9})$/;
/** One alternative name. Node writes a name as JSON if it contains a separator. */
const ONE_NAME = /([^:,]+):("(?:[^"\\]|\\.)*"|[^,]*)(?:, |$)/gy;

/** The URI of a node. */
export function nodeUri({ clusterId, nodeId }: NodeName): string {
  return `${SCHEME}${encodeURIComponent(clusterId)}/${nodeId}`;
}

/**
 * The node that a certificate is for. Undefined if it names none, several, or an invalid one.
 *
 * @param alternativeNames in the form of `X509Certificate.subjectAltName`
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
