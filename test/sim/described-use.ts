/**
 * Connects the parts of a world with documents: the operator who applies them, the clients that use descriptors, and
 * the checkers.
 */
import { groupOfPartition } from '../../src/partition/placement.ts';
import type { ClientWorld } from './client-world.ts';
import type { Clients } from './clients.ts';
import type { DescribedChecker } from './described-checker.ts';
import { DescribedClients } from './described-clients.ts';
import { DescribedWatch } from './described-watch.ts';
import { DocumentOperator } from './document-operator.ts';
import type { DocumentSettings } from './documents.ts';
import type { SimNode } from './sim-node.ts';

export interface DescribedUseInit {
  readonly documents: DocumentSettings;
  readonly world: ClientWorld;
  readonly checker: DescribedChecker;
  readonly clients: Pick<Clients, 'isActive' | 'mustDecideSince'>;
  /** From then on no document is applied. */
  readonly endOfChangesMillis: number;
  /** The version of the last requested rules, as committed. */
  readonly wantedVersion: () => number;
}

export class DescribedUse {
  readonly watch: DescribedWatch;
  readonly operator: DocumentOperator;
  readonly clients: DescribedClients;
  readonly #checker: DescribedChecker;

  constructor({ documents, world, checker, clients, endOfChangesMillis, wantedVersion }: DescribedUseInit) {
    this.#checker = checker;
    this.watch = new DescribedWatch(world, checker);
    const { settings, random, story, after, askable, limits, now } = world;
    const partitions = Array.from({ length: settings.config.partitions }, (_, partition) => partition);
    this.operator = new DocumentOperator(
      {
        settings,
        random,
        story,
        after,
        askable,
        isActive: () => now() < endOfChangesMillis,
        reported: (version) => {
          story.seen('rules reported in force');
          checker.rulesReported = Math.max(checker.rulesReported, version);
        },
      },
      documents,
    );
    this.clients = new DescribedClients({
      world,
      watch: this.watch,
      meanMillis: documents.clientMeanMillis,
      isActive: () => clients.isActive,
      mustDecideSince: () => clients.mustDecideSince,
      areRulesSettled: () =>
        partitions.every((partition) => limits.versionOf(groupOfPartition(partition)) >= wantedVersion()),
    });
  }

  /** Everything is healed, and all replicas are equal. */
  checkSettled(nodes: readonly SimNode[]): void {
    this.watch.checkAnswered();
    this.#checker.checkSettled(nodes);
  }
}
