package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A pipeListener hands out connections in memory, so that a test can use the
// fake clock of synctest.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { close(l.done); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }

// inMemory runs a server in a bubble with a fake clock. dial opens a connection.
func inMemory(t *testing.T, test func(t *testing.T, dial func() net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		l := &pipeListener{make(chan net.Conn), make(chan struct{})}
		routes := map[string]http.Handler{}
		routes["POST /upload"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			if err != nil {
				w.WriteHeader(http.StatusBadRequest)
			}
			fmt.Fprintf(w, "%d bytes", n)
		})
		routes["/stream"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				_, _ = io.Copy(io.Discard, r.Body)
			}
			rc := http.NewResponseController(w)
			_ = rc.SetWriteDeadline(time.Time{})
			for range 6 {
				fmt.Fprintln(w, "still here")
				_ = rc.Flush()
				select {
				case <-time.After(time.Hour):
				case <-r.Context().Done():
					return
				}
			}
			fmt.Fprintln(w, "the end")
		})
		routes["GET /socket"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			time.Sleep(time.Hour) // both sides are silent
			fmt.Fprint(conn, "still here")
		})
		s := New(l, slog.New(slog.DiscardHandler), Options{Routes: routes,
			Admit: func(w http.ResponseWriter, r *http.Request) bool {
				if r.Header.Get("X-Bad") != "" {
					w.WriteHeader(http.StatusForbidden)
				}
				return r.Header.Get("X-Bad") == ""
			},
			Able: func(context.Context) error { return nil }})
		s.Start()
		test(t, func() net.Conn {
			ours, theirs := net.Pipe()
			l.conns <- theirs
			t.Cleanup(func() { ours.Close() })
			return ours
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}

// closedAfter reads until the server closes the connection. It returns the time
// until then, and the answer.
func closedAfter(conn net.Conn) (took time.Duration, answer string) {
	start := time.Now()
	_ = conn.SetReadDeadline(start.Add(24 * time.Hour)) // fails only on a closed pipe
	raw, err := io.ReadAll(conn)
	if err != nil {
		return 24 * time.Hour, string(raw)
	}
	return time.Since(start), string(raw)
}

// TestHeldBodies checks that a client that announces a body and does not send
// it can hold its connection only for a few seconds, on every kind of route.
func TestHeldBodies(t *testing.T) {
	length := "Content-Length: 100\r\n\r\n{"
	chunked := "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"
	upgrade := "Connection: Upgrade\r\nUpgrade: websocket\r\n"
	for name, request := range map[string]string{
		"refused":           "POST /upload HTTP/1.1\r\nHost: x\r\nX-Bad: 1\r\n" + length,
		"refused, chunked":  "POST /upload HTTP/1.1\r\nHost: x\r\nX-Bad: 1\r\n" + chunked,
		"refused upgrade":   "GET /stream HTTP/1.1\r\nHost: x\r\nX-Bad: 1\r\n" + upgrade + length,
		"health":            "GET /healthz HTTP/1.1\r\nHost: x\r\n" + length,
		"health, chunked":   "GET /healthz HTTP/1.1\r\nHost: x\r\n" + chunked,
		"root upgrade":      "GET / HTTP/1.1\r\nHost: x\r\n" + upgrade + length,
		"no such route":     "POST /nowhere HTTP/1.1\r\nHost: x\r\n" + length,
		"no such method":    "DELETE /upload HTTP/1.1\r\nHost: x\r\n" + length,
		"expects to go on":  "GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n",
		"read and not sent": "POST /upload HTTP/1.1\r\nHost: x\r\n" + length,
	} {
		for _, dripped := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " dripped ", dripped), func(t *testing.T) {
				inMemory(t, func(t *testing.T, dial func() net.Conn) {
					conn := dial()
					if _, err := io.WriteString(conn, request); err != nil {
						t.Fatal(err)
					}
					var dripping sync.WaitGroup
					if dripped {
						dripping.Go(func() {
							for {
								time.Sleep(time.Second)
								if _, err := io.WriteString(conn, " "); err != nil {
									return
								}
							}
						})
					}
					took, answer := closedAfter(conn)
					conn.Close()
					dripping.Wait()
					if took > 15*time.Second || !strings.HasPrefix(answer, "HTTP/1.1 ") {
						t.Errorf("held for %v: %q", took, answer)
					}
					if !strings.Contains(answer, "Connection: close") {
						t.Errorf("%q does not say that the connection ends", answer)
					}
				})
			})
		}
	}
}

// TestSlowUploads checks that a client may be slow if it sends at least minRate.
func TestSlowUploads(t *testing.T) {
	const size, each = 2 << 20, 1 << 10
	for _, pace := range []struct {
		every time.Duration
		good  bool
	}{{200 * time.Millisecond, true}, {2 * time.Second, false}} {
		inMemory(t, func(t *testing.T, dial func() net.Conn) {
			conn := dial()
			answered := make(chan string, 1)
			go func() {
				r := bufio.NewReader(conn)
				res, err := http.ReadResponse(r, nil)
				if err != nil {
					answered <- err.Error()
					return
				}
				body, _ := io.ReadAll(res.Body)
				answered <- res.Status + " " + string(body)
			}()
			fmt.Fprintf(conn, "POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size)
			start := time.Now()
			var err error
			for sent := 0; sent < size && err == nil; sent += each {
				time.Sleep(pace.every)
				_, err = conn.Write(make([]byte, each))
			}
			got := <-answered
			if want := fmt.Sprintf("200 OK %d bytes", size); (got == want) != pace.good {
				t.Errorf("1 KiB every %v is answered %q after %v", pace.every, got, time.Since(start))
			}
			if !pace.good && time.Since(start) > time.Minute {
				t.Errorf("it took %v to lose patience", time.Since(start))
			}
		})
	}
}

// TestStreamsOutliveBodyTimeout checks that the time limit for a body does not end the stream that answers it.
func TestStreamsOutliveBodyTimeout(t *testing.T) {
	for name, request := range map[string]string{
		"no body":          "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n",
		"body":             "POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"chunked body":     "POST /stream HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"body nobody read": "GET /stream HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
	} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, func(t *testing.T, dial func() net.Conn) {
				conn := dial()
				if _, err := io.WriteString(conn, request); err != nil {
					t.Fatal(err)
				}
				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(res.Body)
				if err != nil || !strings.Contains(string(body), "the end") {
					t.Errorf("%q %v", body, err)
				}
			})
		})
	}
}

// TestConnectionsAreReused checks that a connection is reused after a body was
// read, and closed after some time without requests.
func TestConnectionsAreReused(t *testing.T) {
	inMemory(t, func(t *testing.T, dial func() net.Conn) {
		conn := dial()
		r := bufio.NewReader(conn)
		for i := range 3 {
			time.Sleep(time.Minute * time.Duration(min(i, 1)))
			if _, err := io.WriteString(conn,
				"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, _ := io.ReadAll(res.Body); string(body) != "5 bytes" || res.Close {
				t.Errorf("request %d: %q, close %v", i, body, res.Close)
			}
		}
		start := time.Now()
		_ = conn.SetReadDeadline(start.Add(time.Hour))
		if _, err := r.ReadByte(); !errors.Is(err, io.EOF) || time.Since(start) > 2*time.Minute {
			t.Errorf("an idle connection: %v after %v", err, time.Since(start))
		}
	})
}

// TestIdleConnectionsAreClosed checks that a connection without requests is closed after two minutes, whatever the
// earlier request was. Each request restarts the time.
func TestIdleConnectionsAreClosed(t *testing.T) {
	for name, request := range map[string]string{
		"get":     "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
		"refused": "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Bad: 1\r\n\r\n",
		"nothing": "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n",
		"body":    "POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nHello",
	} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, func(t *testing.T, dial func() net.Conn) {
				conn := dial()
				in := bufio.NewReader(conn)
				for range 3 {
					fmt.Fprint(conn, request)
					res, err := http.ReadResponse(in, nil)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := io.Copy(io.Discard, res.Body); err != nil || res.Close {
						t.Fatalf("the connection is not kept: %v", err)
					}
					time.Sleep(idleWithin - time.Second)
				}
				if took, rest := closedAfter(conn); took != time.Second || rest != "" {
					t.Errorf("the connection was closed after %v more, with %q", took, rest)
				}
			})
		})
	}
}

// TestSilentSocketsAreKept checks that these limits do not apply to sockets, which have their own.
func TestSilentSocketsAreKept(t *testing.T) {
	inMemory(t, func(t *testing.T, dial func() net.Conn) {
		conn := dial()
		fmt.Fprint(conn, "GET /socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		if took, said := closedAfter(conn); took != time.Hour || said != "still here" {
			t.Errorf("after %v: %q", took, said)
		}
	})
}
