/**
 * Reads a document of rules in any of the known formats. The result is either checked definitions or all mistakes.
 * It opens no file.
 */
import { LineCounter } from 'yaml';
import { utf8Length } from '../api/bounded.ts';
import { ENVOY_FIELDS, readEnvoyRules } from './envoy-yaml.ts';
import { mapOf } from './fields.ts';
import { Findings, type Mistake, StopReading } from './mistakes.ts';
import { NATIVE_FIELDS, readNativeRules } from './native-yaml.ts';
import { DEFINITIONS_MAX, DOCUMENT_BYTES_MAX, type RuleDefinition } from './rule-definition.ts';
import { checkTogether, type Located } from './together.ts';
import { type MapTree, readTree } from './yaml-tree.ts';

/** `native`: rules.yaml; `envoy`: the configuration of envoyproxy/ratelimit. */
export type RulesFormat = 'native' | 'envoy';

/** The rules of a document, or its mistakes. */
export type RulesRead =
  | {
      readonly kind: 'rules';
      readonly format: RulesFormat;
      /** In the order of the document. */
      readonly definitions: readonly RuleDefinition[];
      readonly notes: readonly Mistake[];
    }
  | {
      readonly kind: 'mistakes';
      /** 1 to `MISTAKES_MAX`, sorted by place. */
      readonly mistakes: readonly Mistake[];
      /** False if reading ended early: at the bound, or at a mistake that hides the rest. There may be more. */
      readonly isComplete: boolean;
      readonly notes: readonly Mistake[];
    };

/**
 * Reads and checks a document.
 *
 * @param source text, or UTF-8 bytes
 * @param beside other rules in force, which the document is checked together with; they are not returned
 * @example readRules('rules: [{id: per-user, key: user, windows: {limit: 100, per: minute}}]')
 */
export function readRules(source: string | Uint8Array, beside: readonly RuleDefinition[] = []): RulesRead {
  const lines = new LineCounter();
  lines.addNewLine(0);
  const findings = new Findings(lines);
  try {
    const text = textOf(source, lines, findings);
    const map = mapOf(readTree(text, lines, findings), 'the document', findings);
    if (map === undefined) throw new StopReading();
    const format = formatOf(map);
    const rules = (format === 'envoy' ? readEnvoyRules : readNativeRules)(map, findings);
    const others = beside.map((definition): Located => ({ definition, at: 0, replacesAt: [] }));
    checkCount([...others, ...rules], findings);
    checkTogether([...rules, ...others], format === 'native', findings);
    const { notes } = findings;
    if (findings.hasMistakes)
      return { kind: 'mistakes', mistakes: findings.mistakes, isComplete: true, notes };
    return { kind: 'rules', format, definitions: rules.map(({ definition }) => definition), notes };
  } catch (error) {
    if (!(error instanceof StopReading)) throw error;
    const { mistakes, notes } = findings;
    return { kind: 'mistakes', mistakes, isComplete: false, notes };
  }
}

/** Recognises the format by its fields: only Envoy's has descriptors at the top. */
function formatOf({ entries }: MapTree): RulesFormat {
  const names = entries.map(({ key }) => key);
  const isEnvoy = ENVOY_FIELDS.some((name) => names.includes(name));
  return isEnvoy && !NATIVE_FIELDS.some((name) => names.includes(name)) ? 'envoy' : 'native';
}

function checkCount(rules: readonly Located[], findings: Findings): void {
  const beyond = rules[DEFINITIONS_MAX];
  if (beyond === undefined) return;
  findings.mistake(
    beyond.at,
    `a document may have at most ${DEFINITIONS_MAX} rules, but has ${rules.length}`,
  );
}

function textOf(source: string | Uint8Array, lines: LineCounter, findings: Findings): string {
  const bytes = typeof source === 'string' ? utf8Length(source) : source.length;
  if (bytes > DOCUMENT_BYTES_MAX) {
    findings.mistake(0, `a document may have at most ${DOCUMENT_BYTES_MAX} bytes, but has ${bytes}`);
    throw new StopReading();
  }
  if (typeof source === 'string') return source;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(source);
  } catch {
    findings.mistake(damageIn(source, lines), 'the document is not valid UTF-8');
    throw new StopReading();
  }
}

/** Index of the first invalid UTF-8 sequence. */
function damageIn(bytes: Uint8Array, lines: LineCounter): number {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  let at = 0;
  let index = 0;
  for (const letter of text) {
    if (letter === '\n') lines.addNewLine(index + 1);
    // The replacement character may also be part of the document itself.
    if (letter === '\uFFFD' && (bytes[at] !== 0xef || bytes[at + 1] !== 0xbf || bytes[at + 2] !== 0xbd))
      break;
    at += utf8Length(letter);
    index += letter.length;
  }
  return index;
}
