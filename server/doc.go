// Package server runs HTTP handlers whose requests carry lazy properties.
//
// A [Server] is an [http.Handler] with its own [http.ServeMux]. Its handlers get
// a [*Request], which is the standard request with session, params, rate limit
// and the application's own properties, each resolved when it is first read, and
// return an error, which becomes an RFC 9457 problem response:
//
//	srv, err := server.New(server.Options{})
//	reqctx.Provide(srv.Registry(), User, reqctx.Prop[*UserRecord]{Resolve: loadUser})
//	srv.HandleFunc("GET /me", func(w http.ResponseWriter, req *server.Request) error {
//		u, err := User.Get(req)
//		if err != nil {
//			return err
//		}
//		return json.NewEncoder(w).Encode(u)
//	})
//	err = srv.ListenAndServe(":8080")
//
// A route says what its requests need: [Require] answers those that lack it before the handler runs. A
// [Group] gives it to several routes, and [Server.Routes] lists it.
// Properties that a handler reads one after another take the sum of their latencies; [Prefetch] starts
// them together.
//
// Sessions, parameters, limits and users need no middleware. What a property adds to a response
// (a cookie, rate-limit fields) it adds when the header goes out, through the response gate that
// every way of sending it passes, and only if it was read. What concerns every request (CORS,
// compression, tracing) is standard middleware, added by [Server.Use]. [AccessLog] is an observer.
//
// Routers of other packages get the properties by [Server.Wrap], and their handlers answer errors
// by [WriteError]. Package servertest tests handlers.
//
// Browsers' cross-origin POSTs, PUTs and DELETEs are refused with 403 by default: see
// Options.CrossOrigin.
//
// The package does no authentication and no templating.
package server
