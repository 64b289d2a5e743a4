-- Marks files that are gone, or exist again, and forgets those gone for long. A file whose entry
-- has changed since it was read stays as it is.
-- KEYS: ringhaul:schedule:{NAME}:state (hash), and from it :files (hash)
-- ARGV: (path, what was remembered of it, what to remember now ('': nothing))...
-- Returns how many are forgotten.
local FILES = string.sub(KEYS[1], 1, -6) .. 'files'
local gone = 0
for i = 1, #ARGV, 3 do
  if redis.call('HGET', FILES, ARGV[i]) == ARGV[i + 1] then
    if ARGV[i + 2] == '' then
      gone = gone + redis.call('HDEL', FILES, ARGV[i])
    else
      redis.call('HSET', FILES, ARGV[i], ARGV[i + 2])
    end
  end
end
return gone
