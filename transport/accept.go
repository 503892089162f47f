package transport

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// upgradable reports why a request cannot become a WebSocket, and the status to answer with; 0 if it can.
func upgradable(r *http.Request) (status int, err error) {
	keys := r.Header.Values("Sec-WebSocket-Key")
	switch {
	case !r.ProtoAtLeast(1, 1) || !lists(r.Header, "Connection", "upgrade") || !lists(r.Header, "Upgrade", "websocket"):
		return http.StatusUpgradeRequired,
			fmt.Errorf("this address is for WebSockets; the request does not ask for one")
	case r.Method != http.MethodGet:
		return http.StatusMethodNotAllowed, fmt.Errorf("a WebSocket is asked for with GET, not %s", r.Method)
	case r.Header.Get("Sec-WebSocket-Version") != "13":
		return http.StatusBadRequest, fmt.Errorf("version %q of WebSocket is not supported; use 13",
			r.Header.Get("Sec-WebSocket-Version"))
	case len(keys) != 1:
		return http.StatusBadRequest, fmt.Errorf("the request has %d Sec-WebSocket-Key headers, not one", len(keys))
	}
	if key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(keys[0])); err != nil || len(key) != 16 {
		return http.StatusBadRequest, fmt.Errorf("Sec-WebSocket-Key %q is not 16 bytes in base64", keys[0])
	}
	return 0, nil
}

// lists reports whether a header contains a word in its comma-separated values, ignoring case.
func lists(h http.Header, name, word string) bool {
	for _, line := range h.Values(name) {
		for part := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(part), word) {
				return true
			}
		}
	}
	return false
}

// upgrade takes over the connection of a request and answers it. On failure it
// has already answered with an error. received is the data that the client has
// already sent.
func upgrade(w http.ResponseWriter, r *http.Request) (_ *wire, received []byte, err error) {
	if status, err := upgradable(r); err != nil {
		switch status {
		case http.StatusUpgradeRequired:
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "websocket")
		case http.StatusBadRequest:
			w.Header().Set("Sec-WebSocket-Version", "13")
		}
		http.Error(w, err.Error(), status)
		return nil, nil, err
	}
	if !hijackable(w) {
		http.Error(w, http.StatusText(http.StatusNotImplemented), http.StatusNotImplemented)
		return nil, nil, fmt.Errorf("the connection of a request cannot be taken over")
	}
	// The protocol uses SHA-1 to show that the server has understood the request.
	const magic = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
	sum := sha1.Sum([]byte(strings.TrimSpace(r.Header.Get("Sec-WebSocket-Key")) + magic))
	h := w.Header()
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", "websocket")
	h.Set("Sec-WebSocket-Accept", base64.StdEncoding.EncodeToString(sum[:]))
	w.WriteHeader(http.StatusSwitchingProtocols)
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("take over a connection: %w", err)
	}
	received, _ = rw.Reader.Peek(rw.Reader.Buffered()) // returns all buffered bytes
	return newWire(conn), received, nil
}

// hijackable reports whether Hijack will work, before an answer is written.
func hijackable(w http.ResponseWriter) bool {
	for {
		switch u := w.(type) {
		case http.Hijacker:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = u.Unwrap()
		default:
			return false
		}
	}
}

func sameHost(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	u, err := url.Parse(origin)
	return origin == "" || err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}
