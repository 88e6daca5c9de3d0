package decisions

import "context"

// floors decide nothing, or next to nothing. What they cost is what the least command
// costs, and the least script.
var floors = []contender{
	{name: "INCR", open: openIncr, sends: []string{"incr"}, loose: true},
	{name: "INCR, autopipelined", open: openIncrPiped, sends: []string{"incr"}, loose: true},
	{name: "EVALSHA, autopipelined", open: openEvalPiped, sends: scripts},
}

func openIncr(addr string, _ quota) (limiter, error) {
	client := newClient(addr)
	return limiter{close: client.Close, take: func(ctx context.Context, key string) (bool, error) {
		err := client.Incr(ctx, key).Err()
		return err == nil, err
	}}, nil
}

func openIncrPiped(addr string, _ quota) (limiter, error) {
	client := newClient(addr)
	piped, err := client.AutoPipeline()
	if err != nil {
		return limiter{}, err
	}
	return limiter{close: client.Close, take: func(ctx context.Context, key string) (bool, error) {
		err := piped.Incr(ctx, key).Err()
		return err == nil, err
	}}, nil
}

// least is a fixed window in a script, with as little as that takes.
const least = `
local n = redis.call('INCR', KEYS[1])
if n == 1 then
	redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return n`

func openEvalPiped(addr string, q quota) (limiter, error) {
	client := newClient(addr)
	hash, err := client.ScriptLoad(context.Background(), least).Result()
	if err != nil {
		return limiter{}, err
	}
	piped, err := client.AutoPipeline()
	if err != nil {
		return limiter{}, err
	}
	return limiter{close: client.Close, take: func(ctx context.Context, key string) (bool, error) {
		n, err := piped.EvalSha(ctx, hash, []string{key}, q.per.Milliseconds()).Int()
		return err == nil && n <= q.limit, err
	}}, nil
}
