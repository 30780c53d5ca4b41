/** Runs one program of `docs/languages/` in every situation. */
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Example, programOf } from './examples.ts';
import { built, checkedBy, type Findings } from './run.ts';
import { ranIn, type Situation, wordOf } from './situations.ts';

/** Runs the program. @param mayInstall install missing packages */
export async function checkedExample(
  { file, text }: Example,
  situations: readonly Situation[],
  mayInstall: boolean,
): Promise<Findings> {
  const program = programOf(file);
  return checkedBy(program, mayInstall, async (output) => {
    await writeFile(join(dirname(output), file), text);
    await built(program, output);
    const checks = new Map<string, string>();
    for (const situation of situations) {
      const word = await wordOf(situation, async (attempt) => {
        const [command, ...values] = program.run(output);
        // The quotes catch a program that does not escape its JSON.
        const user = `${file} "${situation.name}" ${attempt}`;
        return ranIn(situation, program.protocol, [command, ...values, user]);
      });
      checks.set(situation.name, word);
    }
    return checks;
  });
}
