/** `quorate doctor` on `cluster.json`: what is wrong in it, and in which line. Reads only. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isNode, LineCounter, parseDocument } from 'yaml';
import { parseCluster } from '../config/cluster-directory.ts';
import { type ClusterConfig, ConfigError } from '../config/config.ts';
import { fail, type Finding, ok } from './finding.ts';

export const CONFIG_CHECK = 'cluster.json';
const CHECK = CONFIG_CHECK;

export async function examineConfig(
  directory: string,
): Promise<{ readonly findings: readonly Finding[]; readonly config?: ClusterConfig }> {
  const path = join(directory, 'cluster.json');
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    const action = 'name the directory of the cluster with --data, or create one with `quorate init`';
    return { findings: [fail(CHECK, `${path} cannot be read (${code})`, action)] };
  }
  try {
    const config = parseCluster(text, path);
    const { nodes, partitions, replicas } = config;
    const found = `${nodes.length} nodes, ${partitions} partitions of ${replicas} copies`;
    return { findings: [ok(CHECK, found)], config };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const line = lineOf(text, error.field.slice(error.field.lastIndexOf(': ') + 1).trim());
    const where = line === undefined ? path : `${path}, line ${line}`;
    const action = 'correct it: no node starts with it';
    return { findings: [fail(CHECK, `${where}: ${error.message}`, action)] };
  }
}

/** Of what a field such as `nodes[1].http.port` names, or what it should be in; or of the first mistake in what is no JSON. */
export function lineOf(text: string, field: string): number | undefined {
  const mistake = mistakeIn(text);
  if (mistake !== undefined) return text.slice(0, mistake).split('\n').length;
  const lines = new LineCounter();
  // JSON is YAML, and this parser knows where it read what.
  const document = parseDocument(text, { lineCounter: lines });
  const steps = field.split(/[.[\]]+/).filter((step) => step !== '');
  for (let depth = steps.length; depth > 0; depth -= 1) {
    const at = steps.slice(0, depth).map((step) => (/^\d+$/.test(step) ? Number(step) : step));
    const found: unknown = document.getIn(at, true);
    if (isNode(found) && found.range) return lines.linePos(found.range[0]).line;
  }
  return undefined;
}

/** Where what is no JSON begins; undefined: it is JSON. */
function mistakeIn(text: string): number | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    const [, position] = /position (\d+)/.exec(String(error)) ?? [];
    // What is missing at the end is missing behind the last line of it.
    return Math.min(Number(position ?? Infinity), text.trimEnd().length);
  }
}
