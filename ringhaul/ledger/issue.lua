-- Chooses units to publish now, so that no more than `window` are issued or leased.
-- ARGV: window, most units to return
-- Returns {epoch, queue, kind, traceparent, unit...}, with the job's labels of these names or '';
-- {0, '', '', ''} if the job does not run or is paused.
-- Order: units whose retry is due, then new ones by number, and once nothing else is left or out,
-- one suspect at a time.
local window, most = int(ARGV[1]), int(ARGV[2])
local m = redis.call('HMGET', META, 'state', 'epoch', 'units', 'next', 'sealed',
  'paused_ms', 'queue', 'kind', 'traceparent')
if m[1] ~= 'RUNNING' or m[6] then
  return { 0, '', '', '' }
end
local out = redis.call('ZCARD', ISSUED) + redis.call('ZCARD', LEASE)
local room = math.min(window - out, most)
local answer = { tonumber(m[2]), m[7] or '', m[8] or '', m[9] or '' }
local handed_out = false

local function hand_out(unit)
  redis.call('ZADD', ISSUED, text(now), unit)
  answer[#answer + 1] = tonumber(unit)
  handed_out = true
  room = room - 1
end

if room > 0 then
  for _, unit in ipairs(redis.call('ZRANGEBYSCORE', DUE, '-inf', text(now), 'LIMIT', 0, room)) do
    redis.call('ZREM', DUE, unit)
    hand_out(unit)
  end
end

local units, next_unit = tonumber(m[3]), tonumber(m[4])
local began_at = next_unit
while room > 0 and next_unit < units do
  next_unit = first_not_done(next_unit)
  if next_unit < units then
    hand_out(text(next_unit))
    next_unit = next_unit + 1
  end
end
if next_unit > began_at then
  redis.call('HSET', META, 'next', text(math.min(next_unit, units)))
end

if room > 0 and not handed_out and out == 0 and m[5] == '1' and redis.call('ZCARD', DUE) == 0 then
  local suspect = redis.call('ZRANGEBYSCORE', SUSPECTS, '-inf', text(now), 'LIMIT', 0, 1)
  if suspect[1] then
    hand_out(suspect[1])
  end
end
return answer
