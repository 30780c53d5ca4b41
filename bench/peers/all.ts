/**
 * Lists everything that can be put under load, in the order of the reports: yardsticks, Quorate, limiters with the same
 * or nearly the same promises, then the others.
 */
import type { Running } from '../running.ts';
import { bareHttp, bareResp, flexible } from './bare.ts';
import { etcd } from './etcd.ts';
import { postgres } from './postgres.ts';
import { quorate, quorateGuarded } from './quorate.ts';
import { otherRedis, strictRedis } from './redis.ts';
import type { ThingUnderLoad } from './thing-under-load.ts';

export function thingsUnderLoad(running: Running): readonly ThingUnderLoad[] {
  return [
    bareHttp(running),
    bareResp(running),
    quorate(running),
    strictRedis(running),
    postgres(running),
    etcd(running),
    quorateGuarded(running),
    ...otherRedis(running),
    flexible(running),
  ];
}
