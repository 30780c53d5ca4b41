/** Parses a structured field that is a list of strings with integer parameters, strictly (RFC 9651, 4.2). */

export interface Item {
  readonly name: string;
  readonly parameters: Readonly<Record<string, number>>;
}

const STRING = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"/;
const PARAMETER = /^; *([a-z*][a-z0-9_.*-]*)=(-?\d{1,15})(?![\d.])/;

/** @throws Error if the value is not such a list */
export function parseItems(value: string): Item[] {
  const items: Item[] = [];
  let rest = value;
  for (;;) {
    const name = STRING.exec(rest);
    if (name?.[1] === undefined) throw new Error(`no string at: ${rest}`);
    rest = rest.slice(name[0].length);
    const parameters: Record<string, number> = {};
    for (let found = PARAMETER.exec(rest); found !== null; found = PARAMETER.exec(rest)) {
      parameters[found[1] ?? ''] = Number(found[2]);
      rest = rest.slice(found[0].length);
    }
    items.push({ name: name[1].replace(/\\(["\\])/g, '$1'), parameters });
    if (rest === '') return items;
    const comma = /^[ \t]*,[ \t]*/.exec(rest);
    if (comma === null) throw new Error(`neither a parameter nor a comma at: ${rest}`);
    rest = rest.slice(comma[0].length);
  }
}
