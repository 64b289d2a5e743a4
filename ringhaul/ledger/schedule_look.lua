-- Where a schedule stands. A beat that sees it, or its timing, for the first time begins it: due times
-- before now are none. A timing at which nobody looks while others look at another is forgotten, and
-- begins anew if it comes back; while nobody looks at all, none is. Two beats may have two timings.
-- KEYS: ringhaul:schedule:{NAME}:state (hash): of each timing since:TIMING, when it began, and
--   seen:TIMING, when it was last looked at
-- ARGV: timing ('': nothing is begun), ttl_s, seen_every_ms, unseen_max_ms
-- Answers {now in ms, settled_ms, since, paused_ms, run, lease_ms}, '' for what is not there.
local clock = redis.call('TIME')
local now_ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
local now = string.format('%.0f', now_ms)
local since, seen = 'since:' .. ARGV[1], 'seen:' .. ARGV[1]
if ARGV[1] ~= '' then
  redis.call('HSETNX', KEYS[1], 'settled_ms', now)
  redis.call('HSETNX', KEYS[1], since, now)
  -- Not at every look: looks are many, and this is a write.
  if tonumber(redis.call('HGET', KEYS[1], seen) or 0) + ARGV[3] <= now_ms then
    redis.call('HSET', KEYS[1], seen, now)
    redis.call('EXPIRE', KEYS[1], ARGV[2])
    for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
      local timing = string.match(field, '^since:(.*)$')
      if timing then
        local last_ms = tonumber(redis.call('HGET', KEYS[1], 'seen:' .. timing) or 0)
        if last_ms + ARGV[4] <= now_ms then
          redis.call('HDEL', KEYS[1], field, 'seen:' .. timing)
        end
      end
    end
  end
end
local state = redis.call('HMGET', KEYS[1], 'settled_ms', since, 'paused_ms', 'run', 'lease_ms')
local answer = { now }
for i = 1, 5 do
  answer[i + 1] = state[i] or ''
end
return answer
