/** The options of `quorate customers`, and the requests that it makes. */
import { type Command, Option } from 'commander';
import { type ClusterOptions, nodeOf, withCluster } from './asked-cluster.ts';
import { explained } from './command-help.ts';
import { CUSTOMER_ID, durationOption, JSON_OPTION, type OverrideOption, overrideOption } from './options.ts';

interface Asked extends ClusterOptions {
  readonly json?: true;
}

interface CustomerPutOptions extends Asked {
  readonly tier?: string;
  readonly override?: readonly OverrideOption[];
  readonly overrides: boolean;
  readonly block?: true;
  readonly duration?: number;
  readonly unblock?: true;
}

/** Adds `customers` to the program. */
export function addCustomersCommands(program: Command, print: (line: string) => void): void {
  const customers = explained(program.command('customers'), {
    does: 'show and change what is so of one customer only',
    examples: ['quorate customers get acme'],
  });
  withCluster(
    explained(customers.command('get'), {
      does: 'show the tier, the limits of its own, whether it is blocked, and the version',
      examples: ['quorate customers get acme'],
    }),
  )
    .argument(...CUSTOMER_ID)
    .option(...JSON_OPTION)
    .action(async (id: string, options: Asked) => {
      const { showCustomer } = await import('./customers-command.ts');
      await showCustomer(id, { node: await nodeOf(options), print });
    });
  withCluster(
    explained(customers.command('put'), {
      does: 'change what is named here, and leave the rest as it is',
      examples: [
        'quorate customers put acme --tier pro --override per-customer/minute=500:1000',
        'quorate customers put acme --block --duration 600000',
      ],
    }),
  )
    .argument(...CUSTOMER_ID)
    .option('--tier <tier>', "its tier; '' takes it away")
    .option(
      '--override <rule=limit[:burst]>',
      'a limit of its own; may be repeated, and replaces all that there are',
      overrideOption,
    )
    .option('--no-overrides', 'no limits of its own any more')
    .addOption(new Option('--block', 'deny everything').conflicts('unblock'))
    .addOption(durationOption().implies({ block: true }).conflicts('unblock'))
    .option('--unblock', 'deny no more than the rules say')
    .option(...JSON_OPTION)
    .action(async (id: string, options: CustomerPutOptions) => {
      const { tier, override, overrides, block, unblock, duration: durationMillis } = options;
      const { changeCustomer } = await import('./customers-command.ts');
      const limits = override ?? (overrides ? undefined : []);
      const blocked = block === undefined && unblock === undefined ? undefined : block === true;
      const terms = {
        ...(tier !== undefined && { tier }),
        ...(limits !== undefined && { overrides: limits }),
        ...(blocked !== undefined && { blocked }),
        ...(durationMillis !== undefined && { durationMillis }),
      };
      await changeCustomer(id, terms, { node: await nodeOf(options), print });
    });
  withCluster(
    explained(customers.command('delete'), {
      does: 'take all of it away, a block as well',
      examples: ['quorate customers delete acme'],
    }),
  )
    .argument(...CUSTOMER_ID)
    .option(...JSON_OPTION)
    .action(async (id: string, options: Asked) => {
      const { forgetCustomer } = await import('./customers-command.ts');
      await forgetCustomer(id, { ...options, node: await nodeOf(options), print });
    });
}
