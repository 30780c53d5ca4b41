/** A replica stops if its leader knows of an acknowledgement that it does not remember, and for no other reason. */
import { describe, expect, it } from 'vitest';
import { RolledBackError } from '../../raft/errors.ts';
import type { Heartbeat } from '../../raft/types.ts';
import { Network } from './network.ts';
import { storedLog } from './stored-log.ts';

function follower(terms: readonly number[], term: number): Network {
  return new Network({ nodes: 3, stored: new Map([[1, storedLog(terms, { term })]]) });
}

function heartbeat(term: number, match: number): Heartbeat {
  return { type: 'heartbeat', from: 2, to: 1, term, commit: 0, timeMillis: 0, readRound: 0, match };
}

describe('an older copy of a directory', () => {
  it('is found when the leader knows of an entry that it lacks', () => {
    const network = follower([1, 1, 3], 3);
    const reported = (): void => network.core(1).step(heartbeat(3, 4));
    expect(reported).toThrow(RolledBackError);
    expect(reported).toThrow(
      'acknowledged entry 4 to leader 2 in term 3, but is in term 3 with a log that ends at 3',
    );
  });

  it('is found when it lacks no entry, but the term: a vote may be forgotten', () => {
    const network = follower([1, 1, 1], 1);
    expect(() => network.core(1).step(heartbeat(2, 3))).toThrow(RolledBackError);
  });

  it('is not suspected because of acknowledgements to another leader, or of entries it has', () => {
    const network = follower([1, 1, 3], 3);
    network.core(1).step(heartbeat(2, 9));
    network.core(1).step(heartbeat(3, 3));
    network.core(1).step({ ...heartbeat(4, 0) });
    expect(network.status(1)).toMatchObject({ term: 4, leader: 2, lastIndex: 3 });
  });

  it('is found by the first heartbeat of a leader that it had answered', () => {
    const network = new Network({ nodes: 3 });
    network.elect(2);
    network.commit(2, 'a');
    const { lastIndex, term } = network.status(2);
    network.tick(2, 2);
    const sent = network.sent.filter(({ type, to }) => type === 'heartbeat' && to === 1);
    expect(sent.at(-1)).toMatchObject({ term, match: lastIndex });
  });
});
