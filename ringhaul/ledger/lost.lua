-- The attempt's process is dead: its lease ends now instead of at its time.
-- ARGV: unit, token, reason why the job cannot go on either or '', where the process was as JSON or '',
--   1 if one record was alone at work else 0, where the process was in words
-- Answers OK; LOST: the lease is not this attempt's (any more).
local unit = ARGV[1]
if redis.call('HGET', OWNER, unit) ~= ARGV[2] then
  return 'LOST'
end
if redis.call('HGET', META, 'state') == 'RUNNING' then
  local before = redis.call('HGET', LOSSES, unit)
  if ARGV[4] ~= '' and #(before or '') < LOSSES_BYTES_MAX then
    redis.call('HSET', LOSSES, unit, (before and before .. '\n' or '') .. ARGV[4])
    if ARGV[5] == '1' and tonumber(redis.call('HGET', STARTS, unit) or '0') > 1 then
      redis.call('HINCRBY', STARTS, unit, -1) -- its record is known, and left out from now on
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
