-- Finds units whose worker or message was lost and lets them be issued again. Any number of
-- sweepers may run it at any time.
-- ARGV: most units of each kind to examine
-- Returns {state, expired leases, units issued but never claimed}; state '' if there is no job.
--
-- A unit counts as unclaimed after `unclaimed_ms`. While nothing of the job gets claimed at all the
-- queue is probably just long, and each further sweep waits twice as long, up to 16 times, so that
-- waiting does not fill the broker with copies of the same messages.
local most = int(ARGV[1])

-- Puts back units that are in no set, `most` at a time: Redis lost `issued`, `due`, `lease` or
-- `suspects`. Starts stay counted in `starts`.
local function find_strays()
  local m = redis.call('HMGET', META, 'units', 'left', 'next')
  local units, next_unit = tonumber(m[1]), tonumber(m[3])
  local ahead = units - next_unit
  if ahead > 0 then
    ahead = ahead - redis.call('BITCOUNT', DONE, text(next_unit), -1, 'BIT')
  end
  local known = ahead + redis.call('ZCARD', ISSUED) + redis.call('ZCARD', DUE)
    + redis.call('ZCARD', LEASE) + redis.call('ZCARD', SUSPECTS)
  if known >= tonumber(m[2]) then
    return
  end
  local number, found = first_not_done(0), 0
  while number < next_unit and found < most do
    local unit = text(number)
    if not (redis.call('ZSCORE', ISSUED, unit) or redis.call('ZSCORE', DUE, unit)
      or redis.call('ZSCORE', LEASE, unit) or redis.call('ZSCORE', SUSPECTS, unit)
      or redis.call('HEXISTS', BAD, unit) == 1) then
      put_back(unit, now)
      found = found + 1
    end
    number = first_not_done(number + 1)
  end
end

local m = redis.call('HMGET', META, 'state', 'unclaimed_ms', 'silent')
if not m[1] then
  return { '', 0, 0 }
end
local expired = redis.call('ZRANGEBYSCORE', LEASE, '-inf', text(now), 'LIMIT', 0, most)
if m[1] ~= 'RUNNING' then
  for _, unit in ipairs(expired) do
    end_lease(unit)
  end
  return { m[1], #expired, 0 }
end
if not adds_up() then
  finish('FAILED', DAMAGE)
  return { 'FAILED', 0, 0 }
end
for _, unit in ipairs(expired) do
  reclaim(unit, 'its lease expired')
end
find_strays()
local wait_ms = tonumber(m[2]) * 2 ^ math.min(tonumber(m[3] or '0'), 4)
local unclaimed = redis.call('ZRANGEBYSCORE', ISSUED, '-inf', text(now - wait_ms), 'LIMIT', 0, most)
for _, unit in ipairs(unclaimed) do
  take_out(unit)
  put_back(unit, now)
end
if #unclaimed > 0 then
  redis.call('HINCRBY', META, 'silent', 1)
end
return { redis.call('HGET', META, 'state'), #expired, #unclaimed }
