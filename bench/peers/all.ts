/** Everything that can be put under load, in the order of the reports: yardsticks, Quorate, then the others. */
import type { Running } from '../running.ts';
import { bareHttp, bareResp, flexible } from './bare.ts';
import { etcd } from './etcd.ts';
import { quorate, quorateGuarded, quorateOf } from './quorate.ts';
import { redisVariants } from './redis.ts';
import type { ThingUnderLoad } from './thing-under-load.ts';

export function thingsUnderLoad(running: Running): readonly ThingUnderLoad[] {
  return [
    bareHttp(running),
    bareResp(running),
    quorate(running),
    quorateOf({ partitions: 16 }, running),
    quorateGuarded(running),
    ...redisVariants(running),
    flexible(running),
    etcd(running),
  ];
}
