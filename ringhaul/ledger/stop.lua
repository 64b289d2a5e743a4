-- Ends a running job of which one unfinished unit alone has more rejects than the job allows.
-- ARGV: unit, token, "rows,rejected,bytes" of this attempt, extra
-- Answers OK; LOST: the lease is not this attempt's (any more), and nothing changed.
--
-- The unit is not done and its figures are in no total: a resume does it again from its beginning.
-- Until then what it left is kept beside that of the committed units, for people to look at.
local unit = ARGV[1]
if redis.call('HGET', OWNER, unit) ~= ARGV[2] then
  return 'LOST'
end
local state = redis.call('HGET', META, 'state')
if not state then
  return 'LOST' -- Redis lost the job: nothing is made anew of it
end
redis.call('HSET', LIVE, unit, ARGV[3])
note_kept(redis.call('HSET', EXTRAS, unit, ARGV[4]))
end_lease(unit)
if state == 'RUNNING' then
  finish('STOPPED')
else
  keep_for_a_while(LIVE)
  keep_for_a_while(EXTRAS)
end
return 'OK'
