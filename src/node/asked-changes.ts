/** What doors may ask to be changed of the cluster, from before the core of this node is loaded: until then nothing is. It only hands on. */
import { NO_NODE } from '../../raft/types.ts';
import type { NodeBehindDoor } from '../api/front-door.ts';
import { labelResult, upgradeResult } from '../wire/cluster-changes.ts';
import type { NodeReadiness } from './readiness.ts';

type AskedChanges = Pick<NodeBehindDoor, 'changeNodes' | 'drain' | 'label' | 'upgrade' | 'changeRules'>;

export function askedChanges(readiness: NodeReadiness): AskedChanges {
  return {
    changeNodes(change, done) {
      if (readiness.core === undefined) done({ ok: false, reason: 'notLeader', leader: NO_NODE });
      else readiness.core.changeNodes(change, done);
    },
    drain(change, done) {
      if (readiness.core === undefined) done({ ok: false, reason: 'notLeader' });
      else readiness.core.draining.change(change, done);
    },
    label(change, done) {
      if (readiness.core === undefined) done({ ok: false, reason: 'notLeader' });
      else readiness.core.change({ type: 'label', change }, (result) => done(labelResult(result)));
    },
    upgrade(change, done) {
      if (readiness.core === undefined) done({ ok: false, reason: 'notLeader' });
      else readiness.core.change({ type: 'upgrade', change }, (result) => done(upgradeResult(result)));
    },
    changeRules(change, done) {
      if (readiness.core === undefined) done({ ok: false, reason: 'notLeader' });
      else readiness.core.rules.change(change, done);
    },
  };
}
