/** The usual sliding log in Redis: a sorted set for each user, with the time of each grant as its score. */

/**
 * KEYS[1]: the user. ARGV: limit, window in milliseconds. Answers 1 for a grant, 0 for a denial. Time is the server's,
 * in microseconds. A counter distinguishes two grants in the same microsecond.
 */
export const SLIDING_LOG_SCRIPT = `
local limit = tonumber(ARGV[1])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - ARGV[2] * 1000))
local count = redis.call('ZCARD', KEYS[1])
if count >= limit then return 0 end
local time = string.format('%.0f', now)
redis.call('ZADD', KEYS[1], time, time .. '-' .. count)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
`;
