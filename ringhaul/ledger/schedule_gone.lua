-- Marks files that are gone, or are there again, and forgets those that are gone for long. A file of which
-- something has become since it was read stays as it is.
-- KEYS: ringhaul:schedule:{NAME}:state (hash), and from it :files (hash)
-- ARGV: (path, what was remembered of it, what is to be remembered ('': nothing))...
-- Answers how many are forgotten.
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
