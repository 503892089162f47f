package providertest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// requests records the requests.
type requests struct {
	mu    sync.Mutex
	asked []Request
}

// A Request is a request as received.
type Request struct {
	Path   string
	Header http.Header
	Body   string
}

func (r *requests) add(request Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, request)
}

// Asked returns the requests so far.
func (r *requests) Asked() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked)
}

// Last returns the last request that a model had to answer. A server that starts may ask for the list of models at any
// time; such a request has no body.
func (r *requests) Last() Request {
	for _, asked := range slices.Backward(r.Asked()) {
		if asked.Body != "" {
			return asked
		}
	}
	return Request{}
}

// A Reply is an answer of a vendor's server, written from its documentation.
type Reply struct {
	Status int // zero: 200
	Header map[string]string
	Body   string
}

// A Script is a server that sends one reply after the other, for features that
// the mock lacks: signatures, encrypted reasoning, cached tokens.
type Script struct {
	requests
	URL string
}

// Play starts a script. More requests than replies fail the test.
func Play(t testing.TB, replies ...Reply) *Script {
	s := &Script{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		s.add(Request{r.URL.Path, r.Header.Clone(), string(raw)})
		n := len(s.Asked())
		if n > len(replies) {
			t.Errorf("request %d was not expected: %s", n, raw)
			panic(http.ErrAbortHandler)
		}
		reply := replies[n-1]
		w.Header().Set("Content-Type", "text/event-stream")
		if reply.Status >= 300 {
			w.Header().Set("Content-Type", "application/json")
		}
		for name, value := range reply.Header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(max(reply.Status, http.StatusOK))
		_, _ = io.WriteString(w, reply.Body) // fails only if the client is gone
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Events returns a stream of server-sent events from lines like `name
// {"json":1}`, or without a name.
func Events(lines string) Reply {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		name, data, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(name, "{") || strings.HasPrefix(name, "[") {
			name, data = "", strings.TrimSpace(line)
		}
		if name != "" {
			b.WriteString("event: " + name + "\n")
		}
		b.WriteString("data: " + data + "\n\n")
	}
	return Reply{Body: b.String()}
}
