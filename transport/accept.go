package transport

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// upgradable says why a request cannot become a WebSocket, and with which status
// to answer it.
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

// lists reports whether a header lists a word, in any case.
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

// upgrade answers a request by taking over its connection. On failure it has
// answered with an error. received is what the client has sent already.
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
	received, _ = rw.Reader.Peek(rw.Reader.Buffered()) // has it all
	return newWire(conn), received, nil
}

// hijackable finds out whether Hijack will work, before anything is answered.
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
