package dialect

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"

	"parley"
)

// ReadBody reads the JSON body of a request of at most so many bytes. The server
// limits how long the client may take to send it. Call it after the request was
// let in: a client without a credential is not to cost more than its header.
func ReadBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	// A page on another site can send a form without being asked; it cannot
	// send JSON.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, parley.Errorf(parley.CodeInvalid, "Send the header Content-Type: application/json.")
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if _, big := errors.AsType[*http.MaxBytesError](err); big {
		return nil, parley.Errorf(parley.CodeTooLarge, "The body is longer than %d bytes.", most)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, parley.Errorf(parley.CodeInvalid, "The body arrived too slowly. Send it again over a faster connection.")
	}
	if err != nil {
		return nil, parley.Errorf(parley.CodeInvalid, "The body could not be read.")
	}
	return data, nil
}

// ReadObject reads a body that is a JSON object; no body is an empty one.
func ReadObject(w http.ResponseWriter, r *http.Request, most int64) (Object, error) {
	if r.ContentLength == 0 {
		return Object{}, nil
	}
	data, err := ReadBody(w, r, most)
	if err != nil || len(data) == 0 {
		return Object{}, err
	}
	o, err := ParseObject(data)
	if err != nil {
		return nil, parley.Errorf(parley.CodeInvalid, "%s.", err)
	}
	return o, nil
}
