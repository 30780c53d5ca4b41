/** All certificates of one node. They are opened before the node starts, and watched until it stops. */
import type { Logger } from 'pino';
import { resolvePath } from './credentials.ts';
import { LiveCredentials } from './live-credentials.ts';
import type { NodeName } from './node-name.ts';
import type { CertificatePaths, TlsSettings } from '../config/tls-settings.ts';

/** The certificate for connections with peers. */
export interface PeerTls {
  /** The name of this node. Its peers have the same cluster id. */
  readonly name: NodeName;
  readonly credentials: LiveCredentials;
}

/** All certificates of one node. */
export interface NodeTls {
  readonly peers: PeerTls;
  /** The certificate of the API listeners. Absent: they do not use TLS. */
  readonly listeners?: LiveCredentials;
  /** Reads all files now. */
  readonly reload: () => void;
  readonly close: () => void;
}

/** What they are opened from. */
export interface NodeTlsInit {
  readonly settings: TlsSettings;
  /** The directory of `cluster.json`. */
  readonly directory: string;
  readonly name: NodeName;
  readonly logger: Logger;
  readonly wallMillis?: () => number;
  readonly checkMillis?: number;
}

/** The time between two checks, in milliseconds. New files are in force after at most two checks. */
const CHECK_MILLIS = 2_000;

/** Opens all certificates. @throws ConfigError naming the file that is missing or wrong */
export async function openNodeTls(init: NodeTlsInit): Promise<NodeTls> {
  const { settings, directory, name, logger, wallMillis = () => Date.now() } = init;
  const filesOf = ({ cert, key }: CertificatePaths) => ({
    cert: resolvePath(cert, directory, name.nodeId),
    key: resolvePath(key, directory, name.nodeId),
  });
  const { ca, listeners } = settings;
  const peers = await LiveCredentials.open({
    setting: 'tls',
    files: { ca: resolvePath(ca, directory, name.nodeId), ...filesOf(settings) },
    node: name,
    logger,
    wallMillis,
  });
  const atListeners =
    typeof listeners === 'object'
      ? await LiveCredentials.open({
          setting: 'tls.listeners',
          files: filesOf(listeners),
          logger,
          wallMillis,
        })
      : listeners && peers;
  const check = (isUrgent: boolean): void => {
    for (const credentials of new Set([peers, atListeners])) {
      credentials?.check({ isUrgent }).catch((error: unknown) => {
        logger.error({ err: error }, 'cannot check the certificate files');
      });
    }
  };
  const timer = setInterval(() => check(false), init.checkMillis ?? CHECK_MILLIS);
  timer.unref();
  return {
    peers: { name, credentials: peers },
    ...(atListeners !== undefined && { listeners: atListeners }),
    reload: () => check(true),
    close: () => clearInterval(timer),
  };
}
