/** Which meter a rule is kept by. Another kind of limit is a class of its own and a line here. */

import type { Rule } from '../../api/rule.ts';
import type { StateSize } from '../state/state-size.ts';
import type { Meter } from './meter.ts';
import { SlidingLogs } from './sliding-logs.ts';

/** @param _rule all rules are sliding logs: none names another meter */
export function meterOf(_rule: Rule, size: StateSize): Meter {
  return new SlidingLogs(size);
}
