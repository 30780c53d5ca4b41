/** The options of `quorate customers`, and the requests that it makes. */
import { type Command, Option } from 'commander';
import { type ClusterOptions, nodeOf, withCluster } from './asked-cluster.ts';
import { explained } from './command-line.ts';
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
    does: 'show and change the settings of a single customer',
    examples: ['quorate customers get acme'],
  });
  withCluster(
    explained(customers.command('get'), {
      does: 'show the tier, the overrides, a block, and the version',
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
      does: 'change the given settings, and keep the others',
      examples: [
        'quorate customers put acme --tier pro --override per-customer/minute=500:1000',
        'quorate customers put acme --block --duration 600000',
      ],
    }),
  )
    .argument(...CUSTOMER_ID)
    .option('--tier <tier>', "its tier; '' removes it")
    .option(
      '--override <rule=limit[:burst]>',
      'its own limit for a rule; may be repeated, and replaces all earlier overrides',
      overrideOption,
    )
    .option('--no-overrides', 'remove all overrides')
    .addOption(new Option('--block', 'deny everything').conflicts('unblock'))
    .addOption(durationOption().implies({ block: true }).conflicts('unblock'))
    .option('--unblock', 'end the block')
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
      does: 'delete all settings, including a block',
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
