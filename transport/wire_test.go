package transport

import (
	"crypto/tls"
	"net"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestWireHangsUpOnTLSAtOnce(t *testing.T) {
	srv := httptest.NewTLSServer(nil) // only for its certificate
	srv.Close()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe() // accepts only data that is being read
		defer theirs.Close()
		shaken := make(chan error, 1)
		go func() { shaken <- tls.Client(theirs, &tls.Config{InsecureSkipVerify: true}).Handshake() }()
		conn := tls.Server(ours, &tls.Config{
			Certificates:           srv.TLS.Certificates,
			SessionTicketsDisabled: true, // they would be sent to a client that no longer reads
		})
		if err := conn.Handshake(); err != nil {
			t.Fatal(err)
		}
		if err := <-shaken; err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := (&wire{Conn: conn}).Close(); err != nil {
			t.Error(err)
		}
		if d := time.Since(start); d > 0 {
			t.Errorf("Close took %v", d)
		}
	})
}
