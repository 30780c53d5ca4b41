/** Replays the golden transcripts in transcripts/ and compares them with the files (format: transcript.ts). */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Transcript } from './transcript.ts';

const FOLDER = join(import.meta.dirname, 'transcripts');
/** Rewrites the files with the actual events: read the difference before committing it. */
const isRewriting = process.env['REWRITE_TRANSCRIPTS'] === '1';

/** Plays a script: runs each block's command, and keeps comments. */
function replay(text: string): string {
  const transcript = new Transcript();
  const blocks = text.trimEnd().split(/\n\n+/);
  const played = blocks.map((block) => {
    const lines = block.split('\n');
    const comments = lines.filter((line) => line.startsWith('#'));
    const [command] = lines.filter((line) => !line.startsWith('#'));
    if (command === undefined) return block;
    return [...comments, command, '----', transcript.run(command)].join('\n');
  });
  return `${played.join('\n\n')}\n`;
}

describe('golden transcripts', () => {
  it.each(readdirSync(FOLDER))('%s', (name) => {
    const path = join(FOLDER, name);
    const text = readFileSync(path, 'utf8');
    const played = replay(text);
    if (isRewriting) writeFileSync(path, played);
    expect(played).toBe(isRewriting ? readFileSync(path, 'utf8') : text);
  });
});
