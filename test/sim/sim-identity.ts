/** The owner of the database of a simulated machine, and its copy of the configuration. Both may be wrong. */
import type { NodeId } from '../../raft/types.ts';
import { factsDigest, factsOf } from '../../src/config/cluster-facts.ts';
import type { NodeAddress } from '../../src/api/node-address.ts';
import type { ClusterConfig } from '../../src/config/config.ts';
import { Admission } from '../../src/meta/admission.ts';
import type { Random } from './random.ts';
import { addressOf, incarnationOf } from './settings.ts';

export class SimIdentity {
  readonly #id: NodeId;
  readonly #config: ClusterConfig;
  #database = 0;
  /** The nodes in the local file; undefined: those of its creation, and this node. */
  #nodes: readonly NodeAddress[] | undefined;

  constructor(id: NodeId, config: ClusterConfig) {
    this.#id = id;
    this.#config = config;
  }

  get incarnation(): string {
    return incarnationOf(this.#id, this.#database);
  }

  /** The database is a new one from now on. */
  makeAnew(): void {
    this.#database += 1;
  }

  /** An operator edits the file: it lists this node and some others, members or not. */
  editFile(ids: readonly NodeId[], random: Random): void {
    const others = random.shuffled(ids.filter((id) => id !== this.#id));
    const some = others.slice(0, random.between(0, others.length));
    this.#nodes = random.shuffled([this.#id, ...some]).map(addressOf);
  }

  get config(): ClusterConfig {
    const { nodes } = this.#config;
    const isListed = nodes.some(({ id }) => id === this.#id);
    return { ...this.#config, nodes: this.#nodes ?? (isListed ? nodes : [...nodes, addressOf(this.#id)]) };
  }

  /** For a process that starts. */
  admission(): Admission {
    const { peer, http } = addressOf(this.#id);
    return new Admission({
      nodeId: this.#id,
      incarnation: this.incarnation,
      facts: factsDigest(factsOf(this.#config)),
      founders: this.#config.founders,
      addresses: { peer, http },
    });
  }
}
