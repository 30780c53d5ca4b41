/**
 * A document of rules, in whichever of the known formats, to checked definitions; or to all its mistakes. Text in, data out: it
 * opens no file.
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

export type RulesFormat = 'native' | 'envoy';

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
      /** 1 to `MISTAKES_MAX`, in order of their places. */
      readonly mistakes: readonly Mistake[];
      /** There may be more: at the bound, or at one that hides what follows, reading ends. */
      readonly isComplete: boolean;
      readonly notes: readonly Mistake[];
    };

/**
 * @param source text, or its bytes in UTF-8
 * @param beside rules that hold besides: what is read is checked together with them, and they are not among the definitions
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

/** Told by what a document says: no other format has descriptors at its top. */
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
    `a document has at most ${DEFINITIONS_MAX} rules, and here are ${rules.length}`,
  );
}

function textOf(source: string | Uint8Array, lines: LineCounter, findings: Findings): string {
  const bytes = typeof source === 'string' ? utf8Length(source) : source.length;
  if (bytes > DOCUMENT_BYTES_MAX) {
    findings.mistake(0, `a document has at most ${DOCUMENT_BYTES_MAX} bytes, and this one has ${bytes}`);
    throw new StopReading();
  }
  if (typeof source === 'string') return source;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(source);
  } catch {
    findings.mistake(damageIn(source, lines), 'this is no UTF-8');
    throw new StopReading();
  }
}

/** Where the first bytes are that are no UTF-8. */
function damageIn(bytes: Uint8Array, lines: LineCounter): number {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  let at = 0;
  let index = 0;
  for (const letter of text) {
    if (letter === '\n') lines.addNewLine(index + 1);
    // The sign for damage may also have been written.
    if (letter === '\uFFFD' && (bytes[at] !== 0xef || bytes[at + 1] !== 0xbf || bytes[at + 2] !== 0xbd))
      break;
    at += utf8Length(letter);
    index += letter.length;
  }
  return index;
}
