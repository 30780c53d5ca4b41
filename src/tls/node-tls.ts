/** All certificates of one node, opened before it starts and watched until it ends. */
import type { Logger } from 'pino';
import { resolvePath } from './credentials.ts';
import { LiveCredentials } from './live-credentials.ts';
import type { NodeName } from './node-name.ts';
import type { CertificatePaths, TlsSettings } from '../config/tls-settings.ts';

export interface PeerTls {
  /** Of this node; its peers have the same cluster id. */
  readonly name: NodeName;
  readonly credentials: LiveCredentials;
}

export interface NodeTls {
  readonly peers: PeerTls;
  /** Absent: the doors speak plainly. */
  readonly doors?: LiveCredentials;
  /** Reads all files now. */
  readonly reload: () => void;
  readonly close: () => void;
}

export interface NodeTlsInit {
  readonly settings: TlsSettings;
  /** With `cluster.json`. */
  readonly directory: string;
  readonly name: NodeName;
  readonly logger: Logger;
  readonly wallMillis?: () => number;
  readonly lookMillis?: number;
}

/** New files are in force after twice that, at most. */
const LOOK_MILLIS = 2_000;

/** @throws ConfigError naming the file that is missing or wrong */
export async function openNodeTls(init: NodeTlsInit): Promise<NodeTls> {
  const { settings, directory, name, logger, wallMillis = () => Date.now() } = init;
  const filesOf = ({ cert, key }: CertificatePaths) => ({
    cert: resolvePath(cert, directory, name.nodeId),
    key: resolvePath(key, directory, name.nodeId),
  });
  const { ca, doors } = settings;
  const peers = await LiveCredentials.open({
    setting: 'tls',
    files: { ca: resolvePath(ca, directory, name.nodeId), ...filesOf(settings) },
    node: name,
    logger,
    wallMillis,
  });
  const atDoors =
    typeof doors === 'object'
      ? await LiveCredentials.open({ setting: 'tls.doors', files: filesOf(doors), logger, wallMillis })
      : doors && peers;
  const look = (isUrgent: boolean): void => {
    for (const credentials of new Set([peers, atDoors])) {
      credentials?.look({ isUrgent }).catch((error: unknown) => {
        logger.error({ err: error }, 'cannot look at the certificates');
      });
    }
  };
  const timer = setInterval(() => look(false), init.lookMillis ?? LOOK_MILLIS);
  timer.unref();
  return {
    peers: { name, credentials: peers },
    ...(atDoors !== undefined && { doors: atDoors }),
    reload: () => look(true),
    close: () => clearInterval(timer),
  };
}
