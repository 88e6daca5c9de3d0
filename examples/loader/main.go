// Loader shows a list of posts by several authors. A query for each author would make N+1 queries. With a
// batch property, one query loads all authors of the list.
//
//	go run ./examples/loader
//
//	curl http://127.0.0.1:8080/naive
//	curl http://127.0.0.1:8080/posts
//
// The first makes 21 queries, the second makes 2. Both answer with the same 20 posts.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`host:port` to listen on")
	flag.Parse()
	srv, err := newServer()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("Listening on http://%s\n", *addr)
	log.Fatal(srv.ListenAndServe(*addr))
}

var (
	db = reqctx.NewKey[*database]("db")
	// author is a property with an argument: the id of an author.
	author = reqctx.NewBatch[int, string]("author")
)

func newServer() (*server.Server, error) {
	srv, err := server.New(server.Options{})
	if err != nil {
		return nil, err
	}
	// Each request counts its own queries.
	reqctx.ProvideState(srv.Registry(), db, func(context.Context) (*database, error) { return &database{}, nil })
	// In a request, the function gets each id once. For an id without a name in the result, the property is the error
	// lazy.ErrMissing.
	reqctx.ProvideBatch(srv.Registry(), author, func(ctx context.Context, ids []int) (map[int]string, error) {
		d, err := db.Get(ctx)
		if err != nil {
			return nil, err
		}
		return d.authors(ids...), nil
	})
	srv.HandleFunc("GET /naive", listNaively)
	srv.HandleFunc("GET /posts", listPosts)
	return srv, nil
}

type post struct {
	Title    string `json:"title"`
	AuthorID int    `json:"-"`
	Author   string `json:"author"`
}

type list struct {
	Queries int64  `json:"queries"`
	Posts   []post `json:"posts"`
}

// listNaively makes a query for the author of each post, even if it has queried the author before.
func listNaively(w http.ResponseWriter, req *server.Request) error {
	d, err := db.Get(req)
	if err != nil {
		return err
	}
	posts := d.posts()
	for i := range posts {
		posts[i].Author = d.authors(posts[i].AuthorID)[posts[i].AuthorID]
	}
	return writePosts(w, d, posts)
}

// listPosts makes one query for all authors.
func listPosts(w http.ResponseWriter, req *server.Request) error {
	d, err := db.Get(req)
	if err != nil {
		return err
	}
	posts := d.posts()
	ids := make([]int, len(posts))
	for i, p := range posts {
		ids[i] = p.AuthorID
	}
	names, err := author.GetAll(req, ids)
	if err != nil {
		return err
	}
	for i, name := range names {
		posts[i].Author = name
	}
	return writePosts(w, d, posts)
}

func writePosts(w http.ResponseWriter, d *database, posts []post) error {
	return server.WriteJSON(w, http.StatusOK, list{d.queries.Load(), posts})
}

// database is a stand-in for a database. Each query takes 10 ms and is counted.
type database struct{ queries atomic.Int64 }

var authors = map[int]string{1: "Ada", 2: "Barbara", 3: "Edsger", 4: "Grace", 5: "Ken"}

// posts returns the result of SELECT title, author_id FROM posts.
func (d *database) posts() (all []post) {
	d.query()
	for i := range 20 {
		all = append(all, post{Title: fmt.Sprintf("Post %d", i+1), AuthorID: 1 + i%len(authors)})
	}
	return all
}

// authors returns the result of SELECT id, name FROM authors WHERE id IN (ids).
func (d *database) authors(ids ...int) map[int]string {
	d.query()
	found := map[int]string{}
	for _, id := range ids {
		if name, ok := authors[id]; ok {
			found[id] = name
		}
	}
	return found
}

func (d *database) query() {
	d.queries.Add(1)
	time.Sleep(10 * time.Millisecond)
}
