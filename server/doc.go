// Package server runs HTTP handlers whose requests carry lazy properties.
//
// A [Server] is an [http.Handler] with its own [http.ServeMux]. Its handlers get a [*Request]: the standard request
// with the session, parameters, rate limits and the application's own properties. Each is resolved when it is first
// read. A handler returns an error, which becomes an RFC 9457 problem response:
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
// A route declares with [Require] what its requests need. If a request does not have it, the server answers with
// an error before the handler runs. [Prefetch] starts several properties together. A [Group] gives both to
// several routes. [Server.Routes] lists the routes.
//
// Properties need no middleware. A property that was read adds its header fields (a cookie, rate-limit fields) when
// the header is sent. [Server.Use] adds standard middleware, such as CORS, compression and tracing. [AccessLog] is an
// observer.
//
// [Server.Wrap] gives the properties to routers of other packages, and [WriteError] writes the responses for
// errors of their handlers. Package servertest tests handlers.
//
// By default, the server answers 403 to cross-origin POSTs, PUTs and DELETEs of browsers: see
// Options.CrossOrigin.
//
// The package does no authentication and no templating.
package server
