/**
 * Loads what is on the disk into a core that is wired to the rest of its node. What follows from the core's events is here:
 * each is a line of the log, and when the nodes of the cluster are others, others are dialled.
 */
import { randomInt } from 'node:crypto';
import { MULTI_RAFT_DEFAULTS } from '../../raft/driver/multi-raft.ts';
import { NO_NODE } from '../../raft/types.ts';
import { loadHash32 } from '../partition/hash.ts';
import { snapshotEveryBytes, stateBytesDefault } from '../partition/node-budget.ts';
import type { Logger } from 'pino';
import type { Access } from './access.ts';
import { busyShare, idleProcessors } from './busy-share.ts';
import { memoryLimits } from './memory.ts';
import { NodeCore } from './node-core.ts';
import type { NodeCoreInit } from './node-core-init.ts';
import type { NodeParts } from './node-parts.ts';
import { currentPeers } from './peer-addresses.ts';

/** @throws what the disk throws if something cannot be read */
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
    doorClock,
    turn,
    usage,
    shedder,
  } = parts;
  const { config, nodeId } = init;
  const memory = memoryLimits();
  const [busy, idle] = [busyShare(), idleProcessors()];
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
    doorMillis: () => doorClock.nowMillis(),
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
    ...toldEvents(parts),
  });
  core.limitState(config.stateBytesMax ?? stateBytesDefault(memory));
  return core;
}

function membershipEvents(parts: NodeParts): Pick<NodeCoreInit, 'nodesChanged' | 'excluded'> {
  const { transport, memberCache, access } = parts;
  const { config, logger } = parts.init;
  let toldMode: ReturnType<Access['mode']> | undefined;
  return {
    nodesChanged(state, metaMembers) {
      const { nodes, version, settledVersion } = state;
      const draining = nodes.filter((each) => each.draining === true).map(({ id }) => id);
      const ids = nodes.map(({ id }) => id);
      logger.info({ nodes: ids, version, settledVersion, draining }, 'nodes of the cluster');
      transport.recheck();
      transport.setPeers(currentPeers(state, metaMembers, config));
      memberCache.update(state);
      const mode = access.mode();
      if (mode !== toldMode) tellMode(mode, logger);
      toldMode = mode;
    },
    excluded({ state, reason }) {
      logger[state === 'removed' ? 'warn' : 'error']({ standing: state }, reason);
      if (state === 'removed') memberCache.removed();
      transport.leave();
    },
  };
}

function tellMode(mode: ReturnType<Access['mode']>, logger: Logger): void {
  if (mode === 'open')
    logger.warn(
      'open: whoever reaches a door may ask, and programs on this machine may change everything; `quorate tokens create --role admin` ends that',
    );
  if (mode === 'closed') logger.info('closed: every request needs a token');
}

type ToldEvents = Pick<
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

function toldEvents({ init: { logger }, metrics, slow }: NodeParts): ToldEvents {
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
        target === NO_NODE ? 'leaders spread: one node would be too busy' : 'leaders gather on one node',
      ),
    drained: (isDraining) =>
      logger.warn(
        isDraining
          ? 'draining: others are to lead what this node leads, and its doors take no requests'
          : 'drained no more: this node takes requests and leads again',
      ),
    snapshotRefused: (group, error) =>
      logger.warn({ group, err: error }, 'a snapshot of a leader is unsound'),
    refusingAtCapacity: (isRefusing, report) =>
      logger.warn(report, isRefusing ? 'at capacity: new users are refused' : 'nobody is refused any more'),
    decidesDegraded(isDegraded, decisions) {
      if (isDegraded) logger.warn('degraded: where nobody can decide, the fail modes of the rules do');
      else logger.warn({ decisions }, 'degraded no more: fail modes of rules decided nothing for a while');
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
