/** Many requests that come together: a crowd at one moment, or a stream of one after the other. */
import type { AllowRequest } from '../../src/api/request.ts';
import type { ClientWorld } from './client-world.ts';
import type { Patience } from './patience.ts';
import type { Random } from './random.ts';
import { ATTEMPTS_MAX } from './repeats.ts';
import type { Requests } from './requests.ts';
import type { SimNode } from './sim-node.ts';

export interface CrowdsInit {
  readonly world: ClientWorld;
  readonly random: Random;
  readonly requests: Requests;
  readonly patience: Patience;
  readonly attempt: (node: SimNode, request: AllowRequest, count: number) => void;
}

const CROWD = 60;
/** For `crowded` worlds, which have too little room for it. */
const CROWD_LARGE = 150;
const TRIES_MAX = 10;
/** Asked one after the other, so that each is a separate entry. */
const STREAM = 100;
const STREAM_GAP_MILLIS = 5;
const STREAM_USERS = 10;

export class Crowds {
  readonly #init: CrowdsInit;

  constructor(init: CrowdsInit) {
    this.#init = init;
  }

  /** Requests at one node, one after the other, decided by a partition that this node leads if there is one. */
  stream(node: SimNode, isMeant: (userId: string) => boolean): void {
    const { world, requests, patience, attempt } = this.#init;
    for (let i = 0; i < STREAM; i += 1) {
      world.after(i * STREAM_GAP_MILLIS, () => {
        const request = requests.alone();
        // Few names, so that the state stays small, and each is used seldom, so that each request is an entry and not a
        // denial.
        let userId = `${request.userId}s${i % STREAM_USERS}`;
        for (let tries = 1; tries < TRIES_MAX && !isMeant(userId); tries += 1) userId = `${userId}s`;
        if (node.isOpen && patience.mayAsk(world.partitionOf(userId)))
          attempt(node, { ...request, userId }, ATTEMPTS_MAX);
      });
    }
  }

  /** Many requests of one user at once, at one node. If there is a user with `isMeant`, it is that one. */
  crowd(node: SimNode, isMeant: (userId: string) => boolean): void {
    const { world, random, requests, attempt } = this.#init;
    const { kind, clients } = world.settings;
    let { userId } = requests.alone();
    for (let tries = 1; tries < TRIES_MAX && !isMeant(userId); tries += 1) ({ userId } = requests.alone());
    for (let left = kind === 'crowded' ? CROWD_LARGE : CROWD; left > 0; left -= 1) {
      const requestId = random.chance(clients.withId) ? requests.newId() : undefined;
      attempt(node, { userId, ...(requestId !== undefined && { requestId }) }, ATTEMPTS_MAX);
    }
  }
}
