/** `quorate customers`: what the command line takes, and what it asks for. */
import { type Command, Option } from 'commander';
import { CA } from './ca-option.ts';
import {
  durationOption,
  JSON_OPTION,
  NODE,
  nodeOption,
  type OverrideOption,
  overrideOption,
  VIA_DEFAULT,
} from './options.ts';

interface CustomerPutOptions {
  readonly node: string;
  readonly tier?: string;
  readonly override?: readonly OverrideOption[];
  readonly overrides: boolean;
  readonly block?: true;
  readonly durationMillis?: number;
  readonly unblock?: true;
}

export function addCustomersCommands(program: Command, print: (line: string) => void): void {
  const customers = program
    .command('customers')
    .description('show and change what is so of one customer only, on the machine of a node');
  customers
    .command('get')
    .description('show the tier, the limits of its own, whether it is blocked, and the version')
    .argument('<id>', 'as the descriptor `customer` has it')
    .option(NODE, 'a node of the cluster', nodeOption, VIA_DEFAULT)
    .option(...CA)
    .option(...JSON_OPTION)
    .action(async (id: string, { node }: { node: string }) => {
      const { showCustomer } = await import('./customers-command.ts');
      await showCustomer(id, { node, print });
    });
  customers
    .command('put')
    .description('change what is named here; the rest stays as it is')
    .argument('<id>', 'as the descriptor `customer` has it')
    .option('--tier <tier>', "its tier; '' takes it away")
    .option(
      '--override <rule=limit[:burst]>',
      'a limit of its own; once for each, in place of all',
      overrideOption,
    )
    .option('--no-overrides', 'no limits of its own any more')
    .addOption(new Option('--block', 'deny everything').conflicts('unblock'))
    .addOption(durationOption().implies({ block: true }).conflicts('unblock'))
    .option('--unblock', 'deny no more than the rules say')
    .option(NODE, 'a node of the cluster', nodeOption, VIA_DEFAULT)
    .option(...CA)
    .option(...JSON_OPTION)
    .action(async (id: string, options: CustomerPutOptions) => {
      const { node, tier, override, overrides, block, unblock, durationMillis } = options;
      const { changeCustomer } = await import('./customers-command.ts');
      const limits = override ?? (overrides ? undefined : []);
      const blocked = block === undefined && unblock === undefined ? undefined : block === true;
      const terms = {
        ...(tier !== undefined && { tier }),
        ...(limits !== undefined && { overrides: limits }),
        ...(blocked !== undefined && { blocked }),
        ...(durationMillis !== undefined && { durationMillis }),
      };
      await changeCustomer(id, terms, { node, print });
    });
  customers
    .command('delete')
    .description('take all of it away, a block as well')
    .argument('<id>', 'as the descriptor `customer` has it')
    .option(NODE, 'a node of the cluster', nodeOption, VIA_DEFAULT)
    .option(...CA)
    .option(...JSON_OPTION)
    .action(async (id: string, options: { node: string; json?: true }) => {
      const { forgetCustomer } = await import('./customers-command.ts');
      await forgetCustomer(id, { ...options, print });
    });
}
