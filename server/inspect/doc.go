// Package inspect is a page that shows what requests did: which properties they resolved, how long that took,
// which properties they did not need, and what the rate limits decided.
//
//	in, err := inspect.New(inspect.Options{})
//	srv, err := server.New(server.Options{Observers: []server.Observer{in}})
//	page, err := inspect.Listen(ctx, "127.0.0.1:6060", in)
//	fmt.Println(page.URL)
//
// An [Inspector] keeps statistics of all requests and a limited number of requests: a sample of all requests, and
// the latest slow, failed or denied requests of each route. All data is in memory and takes less than
// Options.MaxBytes.
//
// The page is for the people who run the server. It listens on a loopback address, accepts only requests for
// known host names, and shows data only to clients that have its token. It shows no keys of rate limits,
// sessions, queries or values of properties, except for properties in Options.Values. It does show texts of
// errors.
//
// The package stores nothing on disk and sends nothing. Package telemetry has metrics over time and traces across
// servers.
package inspect
