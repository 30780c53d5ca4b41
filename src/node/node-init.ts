/** The arguments that a node is started with. Types only. */
import type { Logger } from 'pino';
import type { LogStore } from '../../raft/driver/store.ts';
import type { NodeId } from '../../raft/types.ts';
import type { ClusterConfig } from '../config/config.ts';
import type { NodeTls } from '../tls/node-tls.ts';
import type { Clocks } from '../api/clocks.ts';

/** What `startNode` needs. */
export interface NodeInit {
  readonly config: ClusterConfig;
  readonly nodeId: NodeId;
  /** Must have been initialised with `bootstrapStore`. */
  readonly dataDirectory: string;
  readonly logger: Logger;
  /** Storage failed or an invariant broke. The node has stopped speaking; the process must exit. */
  readonly onFatal: (error: unknown) => void;
  /** The certificates, closed by the caller. Absent: connections are not encrypted. */
  readonly tls?: NodeTls;
  /** Version of the package. */
  readonly version?: string;
  /** Host to listen on. Absent: the addresses at which others find the node. */
  readonly listen?: string;
  readonly clocks?: Clocks;
  /** Wraps the store, for tests of failing disks. */
  readonly wrapStore?: (store: LogStore) => LogStore;
}
