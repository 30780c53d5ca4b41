/** `--ca`: with it a command speaks TLS with the nodes, and trusts who shows a certificate of that CA. */
import type { Command } from 'commander';
import { readAuthorities, trustOnly } from './node-fetch.ts';

export const CA = ['--ca <file>', "the cluster's CA (certs/ca.crt), where its doors speak TLS"] as const;
/** What the options are called that say which node. */
const ADDRESSES = ['via', 'node'] as const;

/** All commands below `program` that have it do so. */
export function withTrust(program: Command): void {
  program.hook('preAction', async (_, command) => {
    const { ca, ...options } = command.opts<Record<string, unknown>>();
    if (typeof ca !== 'string') return;
    trustOnly({ ca: [await readAuthorities(ca, '--ca')] });
    for (const name of ADDRESSES) {
      const url = options[name];
      const source = command.getOptionValueSource(name);
      if (typeof url === 'string' && source !== undefined)
        command.setOptionValueWithSource(name, url.replace(/^http:/, 'https:'), source);
    }
  });
}
