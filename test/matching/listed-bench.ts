/** Helpers for tests of requests of lists, with scripted peeks. */
import type { ListedAnswer, ListedRequest } from '../../src/api/listed.ts';
import type { PeekAnswer, PeekRequest } from '../../src/api/peek.ts';
import { Bench, ruleSetOf } from './bench.ts';

export const DOCUMENT = `
domain: edge
descriptors:
  - key: user
    rate_limit: { name: per_user, unit: minute, requests_per_unit: 10 }
    descriptors:
      - key: path
        value: /dear
        rate_limit: { unit: hour, requests_per_unit: 2 }
  - key: ip
    rate_limit: { unit: second, requests_per_unit: 5 }
  - key: vip
    rate_limit: { unlimited: true, replaces: [{ name: per_user }] }
  - key: shadow
    shadow_mode: true
    rate_limit: { unit: second, requests_per_unit: 1 }
  - key: probe
    descriptors:
      - { key: path, rate_limit: { unit: hour, requests_per_unit: 2 } }
      - { key: path, value: /health }
`;
export const USER_RULE = 'edge|user/minute';
export const IP_RULE = 'edge|ip/second';

export type List = ListedRequest['lists'][number];

export function listOf(entries: Readonly<Record<string, string>>, more: Partial<List> = {}): List {
  return { entries: Object.entries(entries).map(([key, value]) => ({ key, value })), cost: 1, ...more };
}

export const USER = listOf({ user: 'ada' });
export const IP = listOf({ ip: '10.0.0.1' });

export class ListedBench extends Bench {
  readonly listed: ListedAnswer[] = [];
  readonly peeks: { readonly request: PeekRequest; readonly answer: (answer: PeekAnswer) => void }[] = [];

  constructor() {
    super();
    this.ruleSet = ruleSetOf(7, DOCUMENT);
  }

  askLists(lists: readonly List[], domain = 'edge'): void {
    this.requests.askListed(
      { domain, lists },
      (request, done) => this.peeks.push({ request, answer: (answer) => done(answer, 0) }),
      (answer) => this.listed.push(answer),
    );
  }

  stand(retryAfterMillis: number): void {
    const limit = { ruleId: IP_RULE, limit: 5, windowMillis: 1_000, remaining: 1, resetMillis: 9 };
    this.peeks[0]!.answer({
      kind: 'keyStatus',
      keyStatus: {
        limits: [{ ...limit, retryAfterMillis }],
        decided: { term: 1, index: 5, timeMillis: 8 },
        rulesVersion: 7,
      },
    });
  }
}
