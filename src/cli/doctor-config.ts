/** The `quorate doctor` check of `cluster.json`: what is wrong in it, and in which line. It only reads. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isNode, LineCounter, parseDocument } from 'yaml';
import { parseCluster } from '../config/cluster-directory.ts';
import { type ClusterConfig, ConfigError } from '../config/config.ts';
import { fail, type Finding, ok } from './finding.ts';

/** The name of this check in findings. */
export const CONFIG_CHECK = 'cluster.json';
const CHECK = CONFIG_CHECK;

/** Checks the file. Returns the configuration if it is valid. */
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

/**
 * The line of a field such as `nodes[1].http.port`, or of its parent if it is missing. If the text is not JSON, the
 * line of the first mistake.
 */
export function lineOf(text: string, field: string): number | undefined {
  const mistake = mistakeIn(text);
  if (mistake !== undefined) return text.slice(0, mistake).split('\n').length;
  const lines = new LineCounter();
  // JSON is also YAML, and the YAML parser keeps line numbers.
  const document = parseDocument(text, { lineCounter: lines });
  const steps = field.split(/[.[\]]+/).filter((step) => step !== '');
  for (let depth = steps.length; depth > 0; depth -= 1) {
    const at = steps.slice(0, depth).map((step) => (/^\d+$/.test(step) ? Number(step) : step));
    const found: unknown = document.getIn(at, true);
    if (isNode(found) && found.range) return lines.linePos(found.range[0]).line;
  }
  return undefined;
}

/** The offset at which the text stops being JSON. Undefined: it is valid JSON. */
function mistakeIn(text: string): number | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    const [, position] = /position (\d+)/.exec(String(error)) ?? [];
    // If something is missing at the end, point at the end of the last line with text.
    return Math.min(Number(position ?? Infinity), text.trimEnd().length);
  }
}
