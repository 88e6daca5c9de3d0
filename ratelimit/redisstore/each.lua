-- This file is the last part of a script that runs the same op, with the same rule, on any number of
-- keys. The file of the op comes before it and defines run.
--
-- KEYS    the counters
-- ARGV    now, the rule's numbers, the interval if the op has one, and then for each key n and the
--         number of equal ops. If all of these are 1, they are left out
-- Result  now, and then for each key the op's integers. They are -1 and zeros if the key holds a foreign
--         value, and -2 and zeros if the counter would exceed 2^53
-- Clock   Redis TIME, unless a test sends its own
-- Atomic  because another caller must not charge between the read and the charge

local i, entry = 0, 0

local function run_rest()
  while i < #KEYS do
    local at = first_entry + 2 * i
    i = i + 1
    entry = o
    run(KEYS[i], number(ARGV[at] or 1), number(ARGV[at + 1] or 1))
  end
end

repeat
  local done, err = pcall(run_rest)
  if not done then
    if err ~= foreign and err ~= overflow then return {err = err} end -- a raised error would lose its code
    out[entry + 1] = err == foreign and -1 or -2
    o = entry + size
    for i = entry + 2, o do out[i] = 0 end
  end
until done
return out
