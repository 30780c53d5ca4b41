/**
 * Loads the core of a node from disk and connects its events: each is logged, and a changed list of nodes changes
 * the peers that are dialled.
 */
import { randomInt } from 'node:crypto';
import { MULTI_RAFT_DEFAULTS } from '../../raft/driver/multi-raft.ts';
import { NO_NODE } from '../../raft/types.ts';
import { loadHash32 } from '../partition/hash.ts';
import { snapshotEveryBytes, stateBytesDefault } from '../partition/node-budget.ts';
import type { Logger } from 'pino';
import { hasTokens } from './access.ts';
import { busyFraction, idleProcessors } from './busy-fraction.ts';
import { memoryLimits } from './memory.ts';
import { NodeCore } from './node-core.ts';
import type { NodeCoreInit } from './node-core-init.ts';
import type { NodeParts } from './node-parts.ts';
import { currentPeers } from './peer-addresses.ts';

/** Loads the core. @throws the error of the disk if something cannot be read */
export async function loadCore(parts: NodeParts): Promise<NodeCore> {
  const {
    init,
    clocks,
    store,
    fatal,
    admission,
    transport,
    readiness,
    view,
    listenerClock,
    turn,
    usage,
    shedder,
  } = parts;
  const { config, nodeId } = init;
  const memory = memoryLimits();
  const [busy, idle] = [busyFraction(), idleProcessors()];
  const everyBytes =
    config.snapshotEveryBytes ??
    snapshotEveryBytes(memory, config.partitions + 1, MULTI_RAFT_DEFAULTS.snapshotEveryBytes);
  const core = await NodeCore.load({
    config,
    nodeId,
    admission,
    store,
    hash: await loadHash32(),
    clocks,
    random: (bound) => randomInt(bound),
    shedding: shedder,
    listenerMillis: () => listenerClock.nowMillis(),
    defer: (task) => turn.at('decide', task),
    gather: (task) => turn.at('gather', task),
    send: (to, type, payload) => transport.send(to, type, payload),
    isConnected: (peer) => transport.isConnectedBothWays(peer),
    loaded: (groups, of) => readiness.loading(groups, of),
    load: () => ({ busy: busy(), idleProcessors: idle(), asked: usage.answeredCount }),
    usage: (query, untilMinute) => usage.counted(query, untilMinute),
    tried: (ruleId, wouldAllow) => usage.tried(ruleId, wouldAllow),
    reported: (peer) => view.update(peer),
    fatal,
    raft: { snapshotEveryBytes: everyBytes, keepLogBytes: Math.floor(everyBytes / 4) },
    ...membershipEvents(parts),
    ...loggedEvents(parts),
  });
  core.limitState(config.stateBytesMax ?? stateBytesDefault(memory));
  return core;
}

/** States of group 0 that follow each other faster than this are not logged one by one. */
const SETTLED_MILLIS = 1_000;

function membershipEvents(parts: NodeParts): Pick<NodeCoreInit, 'nodesChanged' | 'excluded'> {
  const { transport, memberCache } = parts;
  const { config, logger } = parts.init;
  let wasClosed: boolean | undefined;
  let settling: NodeJS.Timeout | undefined;
  let loggedNodes = '';
  return {
    nodesChanged(state, metaMembers) {
      const { nodes, version, settledVersion } = state;
      const draining = nodes.filter((each) => each.draining === true).map(({ id }) => id);
      const ids = nodes.map(({ id }) => id);
      const fields = { nodes: ids, version, settledVersion, draining };
      const nodesText = JSON.stringify(fields);
      // This is also called for changes of rules and tokens, and for addresses that nodes report.
      if (nodesText !== loggedNodes) logger.info(fields, 'nodes of the cluster');
      loggedNodes = nodesText;
      transport.recheck();
      transport.setPeers(currentPeers(state, metaMembers, config));
      memberCache.update(state);
      // A node that joins or starts applies older states first, and only the last of them says who may ask now.
      clearTimeout(settling);
      settling = setTimeout(() => {
        const isClosed = hasTokens(config, memberCache.known);
        if (isClosed !== wasClosed) logAccess(isClosed, logger);
        wasClosed = isClosed;
      }, SETTLED_MILLIS).unref();
    },
    excluded({ state, reason }) {
      logger[state === 'removed' ? 'warn' : 'error']({ membership: state }, reason);
      if (state === 'removed') memberCache.removed();
      transport.leave();
    },
  };
}

function logAccess(isClosed: boolean, logger: Logger): void {
  if (isClosed) logger.info('access is closed: every request needs a token');
  else
    logger.warn(
      'access is open: anybody who reaches a listener may ask, and programs on this machine may change everything; `quorate tokens create --role admin` closes it',
    );
}

type LoggedEvents = Pick<
  NodeCoreInit,
  | 'leaderChanged'
  | 'leadersGather'
  | 'timed'
  | 'drained'
  | 'snapshotRefused'
  | 'refusingAtCapacity'
  | 'clockJudged'
  | 'decidesDegraded'
>;

function loggedEvents({ init: { logger }, metrics, slow }: NodeParts): LoggedEvents {
  return {
    timed(partition, timing) {
      metrics.operation.entryApplied(timing);
      slow.entryApplied(partition, timing);
    },
    leaderChanged(partition, leader) {
      metrics.operation.leaderChanged(leader);
      logger.info({ partition, leader }, leader === NO_NODE ? 'leader lost' : 'leader elected');
    },
    leadersGather: (target) =>
      logger.info(
        { target },
        target === NO_NODE
          ? 'leaders spread: the node that led all was too busy or may not lead now, or a majority is down'
          : 'leaders gather on one node',
      ),
    drained: (isDraining) =>
      logger.warn(
        isDraining
          ? 'draining: this node hands over its leaderships, and its listeners refuse requests'
          : 'no longer draining: this node takes requests and leads again',
      ),
    snapshotRefused: (group, error) =>
      logger.warn({ group, err: error }, 'refused an invalid snapshot from a leader'),
    refusingAtCapacity: (isRefusing, report) =>
      logger.warn(
        report,
        isRefusing ? 'at capacity: new users are refused' : 'no longer at capacity: new users are accepted',
      ),
    decidesDegraded(isDegraded, decisions) {
      if (isDegraded) logger.warn('degraded: partitions cannot decide, so the fail modes of the rules do');
      else logger.warn({ decisions }, 'no longer degraded: fail modes have decided nothing for a while');
    },
    clockJudged(verdict) {
      if (verdict.fit) logger.info("this node's clock runs at the speed of the others': it may lead again");
      else
        logger.warn(
          { direction: verdict.direction, atLeastPpm: Math.round(verdict.atLeastPpm) },
          "this node's clock runs too fast or too slow against those of a majority: it gives up its leaderships",
        );
    },
  };
}
