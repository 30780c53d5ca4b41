/**
 * What the transport needs to know about members: who this node is, and which nodes are admitted. Implemented in
 * src/meta/admission.ts.
 */
import type { NodeId } from '../../raft/types.ts';
import type { VersionRange } from '../api/versions.ts';
import type { Hello, Refusal, Sender } from '../wire/hello.ts';

/** Identity of this node and admission of others. */
export interface Gate {
  readonly self: Sender;
  /** The protocol versions that this node speaks now, as in its hello. */
  readonly versions: VersionRange;
  /** The hello for a node that is dialled. */
  helloTo(target: NodeId): Hello;
  /** Why this node is refused; undefined: it is admitted. */
  refusalOf(hello: Hello): Refusal | undefined;
}
