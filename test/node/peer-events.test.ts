/** Tests that frames and connection events of peers reach the right parts of a node. */
import { describe, expect, it } from 'vitest';
import { PeerEvents, type PeerEventsInit } from '../../src/node/peer-events.ts';

/** The calls that each part received. */
function listening(): { readonly events: PeerEvents; readonly reported: string[] } {
  const reported: string[] = [];
  const room = (name: string): unknown =>
    new Proxy({}, { get: (_, call) => (peer: number) => reported.push(`${name}.${String(call)}(${peer})`) });
  const names = ['admission', 'raft', 'membership', 'capacity', 'clock', 'forwarder', 'router', 'usage'];
  const rooms = Object.fromEntries(names.map((name) => [name, room(name)]));
  return { events: new PeerEvents({ nodeId: 1, ...rooms } as unknown as PeerEventsInit), reported };
}

describe('a connection that broke', () => {
  it.each(['peerLost', 'peerDisconnected'] as const)(
    'is no longer used to reach a leader, for each side that may have opened it: %s',
    (event) => {
      const { events, reported } = listening();
      events[event](2);
      expect(reported).toContain('router.peerUnreachable(2)');
    },
  );

  it('from a peer may mean that its process has ended: its groups elect another leader', () => {
    const { events, reported } = listening();
    events.peerLost(2);
    expect(reported).toContain('raft.peerLost(2)');
  });
});
