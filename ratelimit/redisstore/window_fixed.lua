-- A window begins with its first charge. It has the length per.
--
-- Rule       limit, per

local rule_size = 2

local function rule(at) return {limit = number(ARGV[at]), ends = now + number(ARGV[at + 1])} end
