/** Server-sent events out of text as it arrives, in pieces of any length. It knows nothing of connections. */

export interface ServerEvent {
  readonly name: string;
  readonly data: string;
}

/** What a line that never ends may hold; more is no stream of events. */
const PENDING_CHARACTERS_MAX = 8 << 20;

export class EventReader {
  #pending = '';

  /**
   * The events that are complete with this piece. Comments, and fields other than `event` and `data`, are left out.
   *
   * @throws RangeError if more than 8 MiB came without the end of an event
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
