/** What the transport asks of who knows the members: who this node is, and who is welcome. Answered in src/meta/admission.ts. */
import type { NodeId } from '../../raft/types.ts';
import type { VersionRange } from '../api/versions.ts';
import type { Hello, Refusal, Sender } from '../wire/hello.ts';

export interface Gate {
  readonly self: Sender;
  /** What this node speaks now; its hello says the same. */
  readonly versions: VersionRange;
  helloTo(target: NodeId): Hello;
  /** Undefined: it is welcome. */
  refusalOf(hello: Hello): Refusal | undefined;
}
