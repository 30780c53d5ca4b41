/** `npm run attack`: runs all attacks against a cluster of three processes with TLS and tokens. */
import { Command } from 'commander';
import { FULL_SCALE } from './scale.ts';
import { ATTACKS, type Row, runAttacks } from './run.ts';

interface Options {
  readonly only?: string;
  readonly json: boolean;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function lineOf({ listener, name, tries, gotIn, changed, millis, noticed }: Row): string {
  const { asked, granted, undecided, failed, p50Millis, p99Millis } = noticed;
  return [
    listener.padEnd(4),
    name.padEnd(72),
    String(tries).padStart(8),
    String(gotIn.length + changed.length).padStart(6),
    (millis / 1_000).toFixed(1).padStart(6),
    `${granted}/${asked}`.padStart(9),
    String(undecided).padStart(9),
    String(failed.length).padStart(6),
    p50Millis.toFixed(0).padStart(5),
    p99Millis.toFixed(0).padStart(6),
  ].join(' ');
}

const HEAD = `${'listener'.padEnd(4)} ${'attack'.padEnd(72)} ${'tries'.padStart(8)} got in   secs granted/asked undec. failed   p50    p99 ms`;

async function run({ only, json }: Options): Promise<void> {
  const attacks = ATTACKS.filter(
    ({ name, listener }) => only === undefined || `${listener} ${name}`.includes(only),
  );
  if (attacks.length === 0) throw new Error(`no attack has "${only}" in its listener and name`);
  if (!json) say(HEAD);
  const rows = await runAttacks(FULL_SCALE, attacks, (row) => {
    if (json) return;
    say(lineOf(row));
    for (const line of [...row.gotIn, ...row.changed, ...new Set(row.noticed.failed)]) say(`       ${line}`);
  });
  if (json) say(JSON.stringify(rows));
  const ways = rows.flatMap(({ gotIn, changed }) => [...gotIn, ...changed]);
  if (!json) say(ways.length === 0 ? 'nothing got in' : `${ways.length} ways in`);
  process.exitCode = ways.length === 0 ? 0 : 1;
}

await new Command()
  .name('npm run attack --')
  .description('Starts a cluster of three processes and attacks it at every listener and the peer port.')
  .option('--only <text>', 'attacks with this in their listener and name')
  .option('--json', 'the table as JSON', false)
  .action(run)
  .parseAsync();
