package web

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func console(t *testing.T) http.Handler {
	t.Helper()
	c := from(fstest.MapFS{
		"dist/index.html":        {Data: []byte("<title>Parley</title>")},
		"dist/theme.js":          {Data: []byte("dark()")},
		"dist/parley.svg":        {Data: []byte("<svg/>")},
		"dist/assets/a-1.js":     {Data: []byte("plain()")},
		"dist/assets/a-1.js.gz":  {Data: []byte("squeezed")},
		"dist/assets/sub/x.html": {Data: []byte("hidden")},
	})
	mux := http.NewServeMux()
	for pattern, h := range c.Routes() {
		mux.Handle(pattern, h)
	}
	return mux
}

func get(t *testing.T, h http.Handler, path, encoding string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	r.Header.Set("Accept-Encoding", encoding)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestPagesAreOnePage(t *testing.T) {
	h := console(t)
	for _, path := range []string{"/chat/1b4e28ba-2fa1-41d2-883f-0016d3cca427", "/agents", "/agents/coder",
		"/approvals", "/runs", "/runs/x.3", "/settings"} {
		w := get(t, h, path, "")
		if w.Code != 200 || !strings.Contains(w.Body.String(), "<title>Parley") ||
			!strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d %q", path, w.Code, w.Body)
		}
		if p := w.Header().Get("Content-Security-Policy"); !strings.Contains(p, "script-src 'self';") ||
			!strings.HasPrefix(p, "default-src 'none'") {
			t.Errorf("%s may run what it likes: %q", path, p)
		}
		if w.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%s stays in caches after an upgrade", path)
		}
	}
	for _, path := range []string{"/nowhere", "/api/nowhere", "/agents/a/b", "/index.html"} {
		if w := get(t, h, path, ""); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestAnUnknownAddressHasAPage(t *testing.T) {
	c := from(fstest.MapFS{"dist/index.html": {Data: []byte("<title>Parley</title>")}})
	w := httptest.NewRecorder()
	c.NotFound(w, httptest.NewRequest("GET", "/nowhere", nil))
	if w.Code != 404 || w.Body.String() != "<title>Parley</title>" || w.Header().Get("Content-Security-Policy") == "" {
		t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
	}
}

func TestAssetsStayInCaches(t *testing.T) {
	h := console(t)
	w := get(t, h, "/assets/a-1.js", "")
	if w.Body.String() != "plain()" || w.Header().Get("Content-Encoding") != "" ||
		!strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
		t.Errorf("plain: %q %v", w.Body, w.Header())
	}
	if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/javascript") {
		t.Errorf("a script is %q", w.Header().Get("Content-Type"))
	}
	w = get(t, h, "/assets/a-1.js", "br, gzip")
	if w.Body.String() != "squeezed" || w.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("compressed: %q %v", w.Body, w.Header())
	}
	for _, path := range []string{"/assets/a-1.js.gz", "/assets/none.js", "/assets/..%2findex.html",
		"/assets/sub%2fx.html", "/assets/"} {
		if w := get(t, h, path, ""); w.Code != 404 {
			t.Errorf("%s: %d %q", path, w.Code, w.Body)
		}
	}
}

func TestWithoutConsole(t *testing.T) {
	if from(fstest.MapFS{"dist/README": {}}) != nil {
		t.Error("there is a console without a page")
	}
}

// TestPagesAreThoseOfTheRouter: a page that the server does not know would be a
// 404 on reload.
func TestPagesAreThoseOfTheRouter(t *testing.T) {
	source, err := os.ReadFile("src/router.tsx")
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, m := range regexp.MustCompile(`path: '([^']+)'`).FindAllStringSubmatch(string(source), -1) {
		if m[1] != "/" {
			there = append(there, regexp.MustCompile(`\$(\w+)`).ReplaceAllString(m[1], "{$1}"))
		}
	}
	slices.Sort(there)
	if known := slices.Sorted(slices.Values(pages)); !slices.Equal(known, there) {
		t.Errorf("the router has %v, the server %v", there, known)
	}
}
