package server

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"parley"
)

// TestLargeBodiesShareALimit sends more large bodies than may be used at once. The others are used when answers have
// begun, and are refused if none begins.
func TestLargeBodiesShareALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, places = 1 << 20, largeUsed >> 20
		read, finish, begun := make(chan error), make(chan bool), make(chan bool)
		h := timed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			read <- err
			if r.ContentLength < size {
				return
			}
			<-finish
			w.WriteHeader(http.StatusOK) // the answer lasts on
			<-begun
		}))
		for range places + 2 {
			go h.ServeHTTP(httptest.NewRecorder(),
				httptest.NewRequest("POST", "/", bytes.NewReader(make([]byte, size))))
		}
		synctest.Wait()
		for i := range places {
			if err := <-read; err != nil {
				t.Fatalf("body %d: %v", i, err)
			}
		}
		select {
		case <-read:
			t.Fatal("more bodies were used than fit the limit")
		case <-time.After(largeWaiting / 2):
		}
		small := httptest.NewRequest("POST", "/", bytes.NewReader(make([]byte, 100)))
		go h.ServeHTTP(httptest.NewRecorder(), small)
		if err := <-read; err != nil {
			t.Error("a small body waited:", err)
		}
		finish <- true
		if err := <-read; err != nil {
			t.Error("a place was free:", err)
		}
		if err := <-read; parley.CodeOf(err) != parley.CodeOverloaded {
			t.Errorf("the last request got %v", err)
		}
		close(finish)
		close(begun)
		synctest.Wait()
	})
}

// TestASlowLargeBodyDelaysNobody checks that other large bodies are used while one is still being received.
func TestASlowLargeBodyDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := make(chan int)
		h := timed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			read <- len(body)
		}))
		body, client := io.Pipe()
		slow := httptest.NewRequest("POST", "/", body)
		slow.ContentLength = largeUsed
		go h.ServeHTTP(httptest.NewRecorder(), slow)
		synctest.Wait()
		go h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", bytes.NewReader(make([]byte, 1<<20))))
		if n := <-read; n != 1<<20 {
			t.Errorf("%d bytes were read", n)
		}
		if _, err := client.Write(make([]byte, largeUsed)); err != nil {
			t.Error(err)
		}
		_ = client.Close() // a pipe's writer closes without an error
		if n := <-read; n != largeUsed {
			t.Errorf("%d bytes of the slow body were read", n)
		}
	})
}
