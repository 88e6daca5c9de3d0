// Package inspect is a page that shows what requests did: which properties they resolved, how
// long that took, what they did not need, and what the rate limits decided.
//
//	in, err := inspect.New(inspect.Options{})
//	srv, err := server.New(server.Options{Observers: []server.Observer{in}})
//	page, err := inspect.Listen(ctx, "127.0.0.1:6060", in)
//	fmt.Println(page.URL)
//
// An [Inspector] keeps statistics of all requests and a bounded number of single ones: a sample
// of the ordinary requests, and of those that were slow, failed or denied the latest of each
// route. All of it is in memory, below Options.MaxBytes.
//
// The page is for the people who run the server, and is not reachable by others: it listens on
// a loopback address, answers only to known host names, and gives data only for a token. It
// shows no rate limit's key, no session, no query and no value of a property unless
// Options.Values names it. It does show error texts.
//
// The package stores nothing on disk, and sends nothing anywhere. For metrics over time and for
// traces across servers there is package telemetry.
package inspect
