/** The operator who brings one rule document after the other into force, through any node, while faults are active. */
import type { DocumentSettings } from './documents.ts';
import type { Random } from './random.ts';
import type { Settings } from './settings.ts';
import type { SimNode } from './sim-node.ts';
import { check, type Story } from './story.ts';

export interface DocumentOperatorWorld {
  readonly settings: Settings;
  readonly random: Random;
  readonly story: Story;
  readonly after: (delayMillis: number, run: () => void) => void;
  readonly isActive: () => boolean;
  readonly askable: () => readonly SimNode[];
  /** The operator got the answer that rules of this version are in force everywhere. */
  readonly reported: (version: number) => void;
}

export class DocumentOperator {
  readonly #world: DocumentOperatorWorld;
  readonly #documents: DocumentSettings;
  readonly #random: Random;

  constructor(world: DocumentOperatorWorld, documents: DocumentSettings) {
    this.#world = world;
    this.#documents = documents;
    this.#random = world.random.fork();
    // The first change comes soon, otherwise there would be few rules to match.
    world.after(this.#random.exponential(documents.changeMeanMillis / 4), () => this.#change());
  }

  #change(): void {
    const { after, isActive, askable } = this.#world;
    const nodes = askable();
    if (isActive() && nodes.length > 0) this.#ask(this.#random.pick(nodes));
    after(this.#random.exponential(this.#documents.changeMeanMillis), () => this.#change());
  }

  /** Asks for the document after the one that this node knows. A node that is behind is refused. */
  #ask(node: SimNode): void {
    const { settings, story } = this.#world;
    node.inProcess((core) => {
      const ifVersion = core.rules.newest?.version;
      const document = this.#documents.list.find(({ version }) => version === (ifVersion ?? 0) + 1);
      const table = settings.tables.find(({ version }) => version === document?.version);
      if (document === undefined || table === undefined) return;
      const { requestIdHorizonMillis, clockDriftPpm, partitionBytesMax } = table;
      const options = { requestIdHorizonMillis, clockDriftPpm, partitionBytesMax };
      story.fault('newDocument', `(version ${document.version}, node ${node.id})`);
      core.rules.change({ table: options, document: document.text, ifVersion }, (result) => {
        if (result.ok && result.pending?.length === 0) this.#world.reported(document.version);
        story.report(() => `node ${node.id} says of rules ${document.version}: ${JSON.stringify(result)}`);
        check(
          result.ok || result.reason !== 'invalid',
          () => `a sound document is refused: ${JSON.stringify(result)}`,
        );
      });
    });
  }
}
