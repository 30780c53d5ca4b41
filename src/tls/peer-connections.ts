/**
 * Connections between nodes that know each other by certificates of one CA: both sides show theirs, TLS 1.3 only, and each is
 * for one node of one cluster. Nothing is read from a connection before that is certain.
 */
import { connect, createServer, type PeerCertificate, type Server, type TLSSocket } from 'node:tls';
import type { HostPort } from '../api/node-address.ts';
import type { NodeId } from '../../raft/types.ts';
import { type NodeName, nodeNameIn } from './node-name.ts';
import type { PeerTls } from './node-tls.ts';

/**
 * Tells of each node that connects, by its certificate; whoever shows none of this cluster's is hung up on.
 *
 * @param refused told why one that the CA signed is not accepted
 */
export function createPeerServer(
  { name, credentials }: PeerTls,
  accepted: (socket: TLSSocket, node: NodeId) => void,
  refused: (socket: TLSSocket, reason: string) => void,
): Server {
  const { ca, cert, key } = credentials.current;
  const rules = { minVersion: 'TLSv1.3', requestCert: true, rejectUnauthorized: true } as const;
  const server = createServer({ ...rules, ca, cert, key }, (socket) => {
    socket.on('error', () => {});
    const certificate = socket.getPeerX509Certificate();
    const shown = nodeNameIn(certificate?.subjectAltName);
    if (shown === undefined) refused(socket, 'its certificate names no node');
    else if (shown.clusterId !== name.clusterId)
      refused(socket, `its certificate is of cluster ${shown.clusterId}`);
    else {
      accepted(socket, shown.nodeId);
      return;
    }
    socket.destroy();
  });
  credentials.onReplaced((next) => {
    server.setSecureContext({ minVersion: 'TLSv1.3', ca: next.ca, cert: next.cert, key: next.key });
  });
  return server;
}

/** Connects; `secureConnect` says that it is `peer` of this cluster who answers there. */
export function connectToPeer({ name, credentials }: PeerTls, address: HostPort, peer: NodeId): TLSSocket {
  const { host, port } = address;
  const socket = connect({
    host,
    port,
    secureContext: credentials.current.context,
    minVersion: 'TLSv1.3',
    rejectUnauthorized: true,
    // Whoever is there is known by its node, at whatever address: a name to ask for would say nothing.
    checkServerIdentity: (_host, certificate) => mismatch(certificate, { ...name, nodeId: peer }),
  });
  socket.setNoDelay(true);
  socket.setKeepAlive(true);
  return socket;
}

/** Does it say that one side does not trust the other? Otherwise the network failed, or nobody is there. */
export function isDistrust({ code = '' }: { readonly code?: string }): boolean {
  return !/^E(?!RR_|PROTO)/.test(code);
}

function mismatch({ subjectaltname }: PeerCertificate, { clusterId, nodeId }: NodeName): Error | undefined {
  const shown = nodeNameIn(subjectaltname);
  if (shown === undefined) return new Error('its certificate names no node');
  if (shown.clusterId !== clusterId) return new Error(`its certificate is of cluster ${shown.clusterId}`);
  if (shown.nodeId !== nodeId) return new Error(`its certificate is of node ${shown.nodeId}, not ${nodeId}`);
  return undefined;
}
