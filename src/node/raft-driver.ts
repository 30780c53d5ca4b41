/**
 * Creates the driver of all Raft groups of a node, with the settings in its configuration; it sends messages as
 * frames.
 */
import { RAFT_DEFAULTS } from '../../raft/core-state.ts';
import { MULTI_RAFT_DEFAULTS, MultiRaft } from '../../raft/driver/multi-raft.ts';
import { ticksOf } from '../config/config.ts';
import { encodePeerMessages } from '../wire/peer-messages.ts';
import type { NodeCoreInit } from './node-core-init.ts';

/** The driver for a node core. */
export function newRaft(init: NodeCoreInit): MultiRaft {
  const { nodeId, config, store, random, clocks, defer, fatal, send, snapshotRefused } = init;
  const raft = { ...RAFT_DEFAULTS, ...ticksOf(config.timing) };
  return new MultiRaft({
    id: nodeId,
    store,
    random,
    monotonicMillis: clocks.monotonicMillis,
    options: { ...MULTI_RAFT_DEFAULTS, raft, ...init.raft },
    defer,
    fatal,
    send(to, messages) {
      for (const payload of encodePeerMessages(messages)) send(to, 'peerMessages', payload);
    },
    snapshotRefused: (group, _meta, error) => snapshotRefused?.(group, error),
  });
}
