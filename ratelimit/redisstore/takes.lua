-- takes: the last part of a script of lists, which does one after another.

local last = #ARGV
while at <= last do
  local r = rule(at)
  at = at + number(ARGV[at]) + 3
  r.keys, r.mode = number(ARGV[at - 2]), number(ARGV[at - 1])
  takes(r)
  at, key = at + r.keys * r.mode, key + r.keys
end
return table.concat(out)
