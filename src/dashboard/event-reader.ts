/** Parses server-sent events from text that arrives in pieces of any length. It knows nothing about connections. */

/** One event of the stream. */
export interface ServerEvent {
  readonly name: string;
  readonly data: string;
}

/** Longest text kept while waiting for the end of an event. A longer one means this is not an event stream. */
const PENDING_CHARACTERS_MAX = 8 << 20;

/** Keeps the incomplete end of one stream between pieces. */
export class EventReader {
  #pending = '';

  /**
   * Returns the events that this piece completes. It skips comments, and fields other than `event` and `data`.
   *
   * @throws RangeError if more than 8 MiB arrived without the end of an event
   */
  read(text: string): ServerEvent[] {
    const blocks = (this.#pending + text).replaceAll('\r\n', '\n').split('\n\n');
    this.#pending = blocks.pop() ?? '';
    if (this.#pending.length > PENDING_CHARACTERS_MAX)
      throw new RangeError(`an event is longer than ${PENDING_CHARACTERS_MAX} characters`);
    return blocks.flatMap((block) => eventIn(block) ?? []);
  }
}

function eventIn(block: string): ServerEvent | undefined {
  let name = 'message';
  const data: string[] = [];
  for (const line of block.split('\n')) {
    const [, field, value = ''] = /^([^:]+)(?:: ?(.*))?$/.exec(line) ?? [];
    if (field === 'event') name = value;
    else if (field === 'data') data.push(value);
  }
  return data.length === 0 ? undefined : { name, data: data.join('\n') };
}
