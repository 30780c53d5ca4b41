/** Parses descriptors as an operator types them: `endpoint=/search, ip=203.0.113.7`. Pure. */

/** Values by name, or a text that says what is wrong. The node checks lengths. */
export function parsedDescriptors(text: string): Readonly<Record<string, string>> | string {
  const found: Record<string, string> = {};
  for (const part of text.split(',').map((each) => each.trim())) {
    if (part === '') continue;
    const at = part.indexOf('=');
    if (at < 1) return `'${part}' must be name=value`;
    found[part.slice(0, at).trim()] = part.slice(at + 1).trim();
  }
  return found;
}
