-- Ends the lease of an attempt whose process died, without waiting for it to expire.
-- ARGV: unit, token, reason why the job cannot continue or '', where the process was as JSON or '',
--   how many records were processed together or 0, where the process was in words, epoch or ''
-- Returns OK; LOST: the lease is not (or no longer) this attempt's. The loss is recorded all the
--   same if the epoch is the job's: the start was counted, and the next attempt has to know.
local unit, token = ARGV[1], ARGV[2]
local by, least_of = unit .. ':by', unit .. ':least'

-- Records where the attempt was, once.
local function note_loss()
  local before = redis.call('HGET', LOSSES, unit)
  local noted = '\n' .. (redis.call('HGET', LOSSES, by) or '') .. '\n'
  if ARGV[4] == '' or #(before or '') >= LOSSES_BYTES_MAX
    or string.find(noted, '\n' .. token .. '\n', 1, true) then
    return
  end
  redis.call('HSET', LOSSES, unit, (before and before .. '\n' or '') .. ARGV[4],
    by, string.sub(noted, 2) .. token)
  -- An attempt that narrows down the record at fault further than those before does not count
  -- against the unit. Once a record is alone, it is skipped, and the next one can be searched for.
  local together, least = int(ARGV[5]), redis.call('HGET', LOSSES, least_of)
  if together > 0 and least and (together == 1 or together < tonumber(least))
    and tonumber(redis.call('HGET', STARTS, unit) or '0') > 1 then
    redis.call('HINCRBY', STARTS, unit, -1)
  end
  if together == 1 and least then
    redis.call('HDEL', LOSSES, least_of)
  elseif together > 0 then
    redis.call('HSET', LOSSES, least_of, together)
  end
end

int(ARGV[5])
local m = redis.call('HMGET', META, 'state', 'epoch')
local running = m[1] == 'RUNNING'
if redis.call('HGET', OWNER, unit) ~= token then
  -- The lease expired before this came. A unit that was started and is neither done nor quarantined
  -- has another attempt by now, or will have one.
  if running and m[2] == ARGV[7] and redis.call('HEXISTS', STARTS, unit) == 1
    and redis.call('GETBIT', DONE, unit) == 0 and redis.call('HEXISTS', BAD, unit) == 0 then
    note_loss()
  end
  return 'LOST'
end
if running then
  note_loss()
  reclaim(unit, 'its process died' .. (ARGV[6] ~= '' and ': ' .. ARGV[6] or ''))
  if ARGV[6] ~= '' and redis.call('HEXISTS', BAD, unit) == 1 then
    redis.call('HSET', BAD, unit, 'crashed: ' .. ARGV[6])
  end
  if ARGV[3] ~= '' then
    -- Even if the job ended with this unit, which was quarantined.
    finish('FAILED', ARGV[3], { by = host_of(token), unit = unit })
  end
else
  end_lease(unit)
end
return 'OK'
