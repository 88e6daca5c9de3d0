package decisions

import "context"

// floors decide nothing, or next to nothing. What they cost is what the least command
// costs, and the least script.
var floors = []Contender{
	{Name: "INCR", Open: openIncr, sends: []string{"incr"}, loose: true},
	{Name: "INCR, autopipelined", Open: openIncrPiped, sends: []string{"incr"}, loose: true},
	{Name: "EVALSHA, autopipelined", Open: openEvalPiped, sends: scripts},
}

func openIncr(addr string) (Client, error) {
	client := newClient(addr)
	return Client{Close: client.Close, Limiter: func(Quota) (Take, error) {
		return func(ctx context.Context, key string, _ int) (Decision, error) {
			err := client.Incr(ctx, key).Err()
			return Decision{Allowed: err == nil}, err
		}, nil
	}}, nil
}

func openIncrPiped(addr string) (Client, error) {
	client := newClient(addr)
	piped, err := client.AutoPipeline()
	if err != nil {
		return Client{}, err
	}
	return Client{Close: client.Close, Limiter: func(Quota) (Take, error) {
		return func(ctx context.Context, key string, _ int) (Decision, error) {
			err := piped.Incr(ctx, key).Err()
			return Decision{Allowed: err == nil}, err
		}, nil
	}}, nil
}

// least is a fixed window in a script, with as little as that takes.
const least = `
local n = redis.call('INCR', KEYS[1])
if n == 1 then
	redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return n`

func openEvalPiped(addr string) (Client, error) {
	client := newClient(addr)
	hash, err := client.ScriptLoad(context.Background(), least).Result()
	if err != nil {
		return Client{}, err
	}
	piped, err := client.AutoPipeline()
	if err != nil {
		return Client{}, err
	}
	return Client{Close: client.Close, Limiter: func(q Quota) (Take, error) {
		return func(ctx context.Context, key string, _ int) (Decision, error) {
			n, err := piped.EvalSha(ctx, hash, []string{key}, q.Per.Milliseconds()).Int()
			return Decision{err == nil && n <= q.Limit, q.Limit - n}, err
		}, nil
	}}, nil
}
