package inspect

import (
	"fmt"
	"slices"

	"github.com/lazyreq/lazyreq/server"
)

// maxServers is the maximum number of servers whose routes are shown.
const maxServers = 16

// routeRow is a row of the table of routes.
type routeRow struct {
	Pattern  string   `json:"pattern"`
	Requires []string `json:"requires"`
	Prefetch []string `json:"prefetch"`
	Lacks    []string `json:"lacks"`
}

// addServer keeps a server to show its routes. An observer that forwards a request of its own making may
// give no server. in.mu is held.
func (in *Inspector) addServer(srv *server.Server) {
	if srv != nil && len(in.servers) < maxServers && !slices.Contains(in.servers, srv) {
		in.servers = append(in.servers, srv)
	}
}

// routeTable returns the routes of the servers that have had a request. It calls methods of the
// application's requirements, so in.mu must not be held.
func (in *Inspector) routeTable() []routeRow {
	in.mu.Lock()
	servers := in.servers // it only grows
	in.mu.Unlock()
	table := []routeRow{}
	for _, srv := range servers {
		for r := range srv.Routes() {
			table = append(table, routeRow{r.Pattern, texts(r.Requires), texts(r.Prefetch), texts(r.Lacks)})
		}
	}
	return table
}

func texts[T any](items []T) []string {
	list := make([]string, len(items))
	for i, item := range items {
		list[i] = fmt.Sprint(item)
	}
	return list
}
