/**
 * TLS connections between nodes. Both sides show a certificate of the same CA, for one node of one cluster, and use
 * TLS 1.3. No data is read from a connection before the certificate is checked.
 */
import { connect, createServer, type PeerCertificate, type Server, type TLSSocket } from 'node:tls';
import type { HostPort } from '../api/node-address.ts';
import type { NodeId } from '../../raft/types.ts';
import { type NodeName, nodeNameIn } from './node-name.ts';
import type { PeerTls } from './node-tls.ts';

/**
 * Creates the server for peers. A connection without a valid certificate of this cluster is closed.
 *
 * @param accepted called for each connected node, with the id in its certificate
 * @param refused called if a certificate is signed by the CA but not accepted
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
      refused(socket, `its certificate is for cluster ${shown.clusterId}`);
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

/** Connects to a peer. After `secureConnect` it is certain that the other side is `peer` of this cluster. */
export function connectToPeer({ name, credentials }: PeerTls, address: HostPort, peer: NodeId): TLSSocket {
  const { host, port } = address;
  const socket = connect({
    host,
    port,
    secureContext: credentials.current.context,
    minVersion: 'TLSv1.3',
    rejectUnauthorized: true,
    // A peer is identified by the node in its certificate, not by its address, so no host name is checked.
    checkServerIdentity: (_host, certificate) => mismatch(certificate, { ...name, nodeId: peer }),
  });
  socket.setNoDelay(true);
  socket.setKeepAlive(true);
  return socket;
}

/**
 * True if an error says that one side does not trust the other. Otherwise the network failed, or nothing listens
 * there.
 */
export function isDistrust({ code = '' }: { readonly code?: string }): boolean {
  return !/^E(?!RR_|PROTO)/.test(code);
}

function mismatch({ subjectaltname }: PeerCertificate, { clusterId, nodeId }: NodeName): Error | undefined {
  const shown = nodeNameIn(subjectaltname);
  if (shown === undefined) return new Error('its certificate names no node');
  if (shown.clusterId !== clusterId) return new Error(`its certificate is for cluster ${shown.clusterId}`);
  if (shown.nodeId !== nodeId) return new Error(`its certificate is for node ${shown.nodeId}, not ${nodeId}`);
  return undefined;
}
