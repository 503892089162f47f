package transport

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestAccept(t *testing.T) {
	upgrade := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"},
		"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"MDEyMzQ1Njc4OWFiY2RlZg=="}}
	allow := func(r *http.Request) bool { return r.Header.Get("Origin") == "https://friend.example" }
	for _, test := range []struct {
		name, origin string
		upgrade      bool
		allow        func(*http.Request) bool
		hide         bool // wrap the ResponseWriter so that it has no Hijack
		change       func(http.Header)
		want         int
	}{
		{name: "not a browser", upgrade: true, want: 101},
		{name: "same host", upgrade: true, origin: "http://parley.example", want: 101},
		{name: "same host, other case", upgrade: true, origin: "https://Parley.Example", want: 101},
		{name: "same host, asked for others", upgrade: true, origin: "http://parley.example", allow: allow, want: 101},
		{name: "friend", upgrade: true, origin: "https://friend.example", allow: allow, want: 101},
		{name: "friend, nobody asked", upgrade: true, origin: "https://friend.example", want: 403},
		{name: "stranger", upgrade: true, origin: "https://stranger.example", allow: allow, want: 403},
		{name: "sandbox", upgrade: true, origin: "null", want: 403},
		{name: "not an origin", upgrade: true, origin: "http://%", want: 403},
		{name: "plain request", want: 426},
		{name: "among other words", upgrade: true, want: 101, change: func(h http.Header) {
			h["Connection"] = []string{"keep-alive, Upgrade"}
		}},
		{name: "another protocol", upgrade: true, want: 426, change: func(h http.Header) { h.Set("Upgrade", "h2c") }},
		{name: "another version", upgrade: true, want: 400, change: func(h http.Header) {
			h.Set("Sec-Websocket-Version", "8")
		}},
		{name: "no key", upgrade: true, want: 400, change: func(h http.Header) { h.Del("Sec-Websocket-Key") }},
		{name: "two keys", upgrade: true, want: 400, change: func(h http.Header) {
			h.Add("Sec-Websocket-Key", h.Get("Sec-Websocket-Key"))
		}},
		{name: "short key", upgrade: true, want: 400, change: func(h http.Header) {
			h.Set("Sec-Websocket-Key", "MDEyMzQ1")
		}},
		{name: "no way to upgrade", upgrade: true, hide: true, want: 501},
	} {
		t.Run(test.name, func(t *testing.T) {
			failed := make(chan error, 1)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if test.hide {
					w = struct{ http.ResponseWriter }{w}
				}
				s, err := Accept(w, r, Options{AllowOrigin: test.allow})
				if err == nil {
					s.Close(Lost, "")
				}
				failed <- err
			}))
			defer srv.Close()
			req, _ := http.NewRequestWithContext(t.Context(), "GET", srv.URL, nil)
			req.Host = "parley.example"
			if test.upgrade {
				req.Header = upgrade.Clone()
			}
			if test.change != nil {
				test.change(req.Header)
			}
			if test.origin != "" {
				req.Header.Set("Origin", test.origin)
			}
			resp, err := srv.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if err := <-failed; resp.StatusCode != test.want || (err == nil) != (test.want == 101) {
				t.Errorf("%d, Accept: %v; want %d", resp.StatusCode, err, test.want)
			}
		})
	}
}
