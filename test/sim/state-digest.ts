/** A digest of a state that does not depend on the order of its items, so it can be updated item by item. */
import type { StateItem } from '../../src/limiter/state/inspection.ts';
import { sayingOf } from './naive-judgement.ts';
import { wordsOfRecord } from './naive-record.ts';

export function digestOfItem(item: StateItem): number {
  const text = textOf(item);
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
  return (hash ^ (hash >>> 13)) >>> 0;
}

export function digestOfItems(items: Iterable<StateItem>): number {
  let sum = 0;
  for (const item of items) sum = (sum + digestOfItem(item)) >>> 0;
  return sum;
}

function textOf(item: StateItem): string {
  switch (item.kind) {
    case 'state': {
      const { version, createdMillis, changedMillis, droppedThroughMillis, sweepTable, sweepSlot, bytes } =
        item;
      const steps = item.utcSteps.map(({ fromMillis, aheadMillis }) => `${fromMillis}+${aheadMillis}`).join();
      return `state ${version} ${createdMillis} ${changedMillis} ${droppedThroughMillis} ${sweepTable} ${sweepSlot} ${bytes} ${steps}`;
    }
    case 'rule': {
      const {
        rule,
        groupWindowMillis,
        isActive,
        isEventTimed,
        evictedThroughMillis,
        ruledIndex,
        sinceMillis,
      } = item;
      const {
        id,
        of = '',
        limit,
        windowMillis,
        clock,
        meter,
        granularityMillis,
        calendar,
        burst,
        queue,
      } = rule;
      const byMeter = [meter, granularityMillis, calendar, burst, queue].join();
      return `rule ${id} ${of} ${limit} ${windowMillis} ${clock} ${byMeter} ${groupWindowMillis} ${isActive} ${isEventTimed} ${evictedThroughMillis} ${ruledIndex} ${sinceMillis}`;
    }
    case 'key': {
      let text = `key ${item.ruleId} ${item.userId} ${item.madeMillis}`;
      for (const { timeMillis, cost, windowMillis = '' } of item.runs)
        text += ` ${timeMillis} ${cost} ${windowMillis}`;
      return text;
    }
    case 'request': {
      const { userId, requestId, asked, expiresMillis, attempt, isFound, isRefunded, decision } = item;
      const { ruleId, cost, timestampMillis, askedDigest } = asked;
      const words = `${userId} ${requestId} ${ruleId} ${cost} ${timestampMillis} ${askedDigest}`;
      return `request ${words} ${expiresMillis} ${attempt} ${isFound} ${isRefunded} ${sayingOf(decision)}`;
    }
    case 'record':
      return `record ${item.userId} ${wordsOfRecord(item.record)}`;
  }
}
