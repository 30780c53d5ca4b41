/**
 * Every program of docs/languages/ whose client is installed here, in every situation. `npm run clients` installs
 * them.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EXAMPLES } from './examples.ts';
import { checkedExample } from './run-example.ts';
import { Situations } from './situations.ts';

let situations: Situations;
beforeAll(async () => {
  situations = await Situations.start();
});
afterAll(async () => situations.stop());

describe('a program of docs/languages prints the output of the page', () => {
  it.for(EXAMPLES)('$file', async (example, { skip }) => {
    const { skipped, checks } = await checkedExample(example, situations.all, false);
    skip(skipped !== undefined, skipped);
    expect([...checks]).toEqual(situations.all.map(({ name }) => [name, 'ok']));
  });
});
