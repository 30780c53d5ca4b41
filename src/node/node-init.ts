/** What a node is started with. */
import type { Logger } from 'pino';
import type { LogStore } from '../../raft/driver/store.ts';
import type { NodeId } from '../../raft/types.ts';
import type { ClusterConfig } from '../config/config.ts';
import type { NodeTls } from '../tls/node-tls.ts';
import type { Clocks } from './node-core-init.ts';

export interface NodeInit {
  readonly config: ClusterConfig;
  readonly nodeId: NodeId;
  /** Must have been initialised with `bootstrapStore`. */
  readonly dataDirectory: string;
  readonly logger: Logger;
  /** Storage failed or an invariant broke. The node has stopped speaking; the process must exit. */
  readonly onFatal: (error: unknown) => void;
  /** Its certificates, which whoever opened them closes. Absent: everything is plain. */
  readonly tls?: NodeTls;
  /** Of the package, for clients that ask. */
  readonly version?: string;
  /** The host to listen at. Absent: those where others find it. */
  readonly listen?: string;
  readonly clocks?: Clocks;
  /** Puts something between the node and its disk, for tests of failing disks. */
  readonly wrapStore?: (store: LogStore) => LogStore;
}
