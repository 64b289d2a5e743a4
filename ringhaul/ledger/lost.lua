-- The attempt's process is dead: its lease ends now instead of at its time.
-- ARGV: unit, token, reason why the job cannot go on either or ''
-- Answers OK; LOST: the lease is not this attempt's (any more).
local unit = ARGV[1]
if redis.call('HGET', OWNER, unit) ~= ARGV[2] then
  return 'LOST'
end
if redis.call('HGET', META, 'state') == 'RUNNING' then
  reclaim(unit)
  if ARGV[3] ~= '' then
    finish('FAILED', ARGV[3]) -- also where the job was over with this unit, which was given up
  end
else
  end_lease(unit)
end
return 'OK'
