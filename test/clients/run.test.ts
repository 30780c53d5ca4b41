/** Tests how the program of a client is installed, built and run, and how its checks are read. */
import { describe, expect, it } from 'vitest';
import type { Program } from './programs.ts';
import { checked, type Findings } from './run.ts';
import { tableOf } from './table.ts';

const PORT = 7;

/** A program in JavaScript, which needs nothing to be installed. */
function program(code: string): Program {
  return { name: 'one', packages: [], run: () => [process.execPath, '-e', code] };
}

describe('the program of a client', () => {
  it('gets the port of a node and a prefix for its keys, and prints the result of each check', async () => {
    const code = 'console.log("first\\tok\\nsecond\\t" + process.argv.slice(1))';
    const { checks } = await checked(program(code), PORT, false);
    expect([...checks]).toEqual([
      ['first', 'ok'],
      ['second', `${PORT},one-`],
    ]);
  });

  it('has failed if it ends before its last check, even if all earlier checks passed', async () => {
    const code = 'console.log("first\\tok"); console.error("no such library"); process.exit(1)';
    const { checks } = await checked(program(code), PORT, false);
    expect([...checks]).toEqual([
      ['first', 'ok'],
      ['run', 'no such library'],
    ]);
    expect(tableOf([{ name: 'one', version: '1', checks }]).hasFailed).toBe(true);
  });

  it('is skipped with the reason if its packages are missing', async () => {
    const missing = { ...program(''), packages: ['no-such-package'] };
    const found = await checked(missing, PORT, false);
    expect(found.skipped).toBe('no-such-package not installed');
    expect(tableOf([found]).hasFailed).toBe(false);
  });
});

describe('the table', () => {
  it('has a line for each client, and one for each failed check', () => {
    const all: Findings[] = [
      {
        name: 'good',
        version: '1.2',
        checks: new Map([
          ['handshake', 'ok'],
          ['echo', 'ok'],
        ]),
      },
      {
        name: 'bad',
        version: '3',
        checks: new Map([
          ['handshake', 'ok'],
          ['echo', '1 instead of 2'],
        ]),
      },
      { name: 'none', version: '3', checks: new Map() },
    ];
    const { lines, hasFailed } = tableOf(all);
    expect(hasFailed).toBe(true);
    expect(lines.slice(1).map((line) => line.replaceAll(/ +/g, ' '))).toEqual([
      'good 1.2 2 of 2 right: handshake, echo',
      'bad 3 1 of 2 right: handshake',
      ' WRONG echo: 1 instead of 2',
      'none 3 0 of 0 right: ',
    ]);
  });
});
