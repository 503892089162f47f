// Package web is the console: a browser application, built from the sources in
// this folder and embedded in the binary.
package web

import (
	"embed"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:generate go run ../cmd/wiretypes src/wire

//go:embed all:dist
var built embed.FS

// pages are the routes of the console; src/router.tsx has the same list. Every
// other unknown address is a 404: see NotFound.
var pages = []string{"/chat/{session}", "/agents", "/agents/{id}", "/approvals", "/runs", "/runs/compare", "/runs/{id}",
	"/files", "/settings"}

// policy lets the page run only files from this server and connect only to it:
// the page shows text from models. Inline styles are allowed because the
// libraries for menus and long lists set them.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self'; " +
	"connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

// Console serves the built console.
type Console struct{ files fs.FS }

// New returns the console in this binary, or nil if it was built without it.
func New() *Console { return from(built) }

func from(files fs.FS) *Console {
	files, err := fs.Sub(files, "dist")
	if err != nil {
		return nil
	}
	if _, err := fs.Stat(files, "index.html"); err != nil {
		return nil
	}
	return &Console{files}
}

// Routes lists the routes besides /.
func (c *Console) Routes() map[string]http.Handler {
	all := map[string]http.Handler{
		"GET /assets/{file}": http.HandlerFunc(c.asset),
		"GET /theme.js":      c.file("theme.js"),
		"GET /parley.svg":    c.file("parley.svg"),
	}
	for _, page := range pages {
		all["GET "+page] = c
	}
	return all
}

// ServeHTTP answers every address with the page.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.page(w, r, http.StatusOK) }

// NotFound also answers with the page, which says that there is nothing at this address.
func (c *Console) NotFound(w http.ResponseWriter, r *http.Request) { c.page(w, r, http.StatusNotFound) }

func (c *Console) page(w http.ResponseWriter, r *http.Request, status int) {
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
	c.send(w, r, "index.html", "no-cache", status)
}

// asset serves a file whose name changes with its content.
func (c *Console) asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	if strings.Contains(name, "/") {
		http.NotFound(w, r)
		return
	}
	c.send(w, r, "assets/"+name, "public, max-age=31536000, immutable", http.StatusOK)
}

// file serves a file with a fixed name: a browser revalidates it each time.
func (c *Console) file(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.send(w, r, name, "no-cache", http.StatusOK)
	})
}

// send serves a file, in its precompressed form if the client accepts that.
func (c *Console) send(w http.ResponseWriter, r *http.Request, name, keep string, status int) {
	if strings.HasSuffix(name, ".gz") {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	body, err := fs.ReadFile(c.files, name+".gz")
	if err == nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
	} else if body, err = fs.ReadFile(c.files, name); err != nil {
		http.NotFound(w, r)
		return
	}
	h.Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	h.Set("Cache-Control", keep)
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client has gone
}
