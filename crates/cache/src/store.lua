-- Writes an answer, unless its key was invalidated a short while ago.
-- KEYS[1]: the key. ARGV: the mark of an invalidated key, the value, how long it lives in milliseconds.
-- pcall: a value of another type is replaced like any other that is no answer.
if redis.pcall('GETRANGE', KEYS[1], 0, #ARGV[1]) == ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
