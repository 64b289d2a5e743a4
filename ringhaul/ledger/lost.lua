-- The attempt's process is dead: its lease ends now instead of at its time.
-- ARGV: unit, token, reason why the job cannot go on either or '', where the process was as JSON or '',
--   how many records were at work together or 0, where the process was in words
-- Answers OK; LOST: the lease is not this attempt's (any more).
local unit = ARGV[1]
if redis.call('HGET', OWNER, unit) ~= ARGV[2] then
  return 'LOST'
end
if redis.call('HGET', META, 'state') == 'RUNNING' then
  local before = redis.call('HGET', LOSSES, unit)
  if ARGV[4] ~= '' and #(before or '') < LOSSES_BYTES_MAX then
    redis.call('HSET', LOSSES, unit, (before and before .. '\n' or '') .. ARGV[4])
    -- An attempt that knows more of the record at fault than those before is not held against the
    -- unit. Once a record is alone, it is left out, and the next one may be looked for.
    local together, least = int(ARGV[5]), redis.call('HGET', LOSSES, unit .. ':least')
    if together > 0 and least and (together == 1 or together < tonumber(least))
      and tonumber(redis.call('HGET', STARTS, unit) or '0') > 1 then
      redis.call('HINCRBY', STARTS, unit, -1)
    end
    if together == 1 and least then
      redis.call('HDEL', LOSSES, unit .. ':least')
    elseif together > 0 then
      redis.call('HSET', LOSSES, unit .. ':least', together)
    end
  end
  reclaim(unit)
  if ARGV[6] ~= '' and redis.call('HEXISTS', BAD, unit) == 1 then
    redis.call('HSET', BAD, unit, 'crashed: ' .. ARGV[6])
  end
  if ARGV[3] ~= '' then
    finish('FAILED', ARGV[3]) -- also where the job was over with this unit, which was given up
  end
else
  end_lease(unit)
end
return 'OK'
