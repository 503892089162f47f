package main

import (
	"context"

	"parley/pdf"
	"parley/port"
)

// readPDFs returns a function that reads PDF documents. Each user can have one
// document read at a time.
func readPDFs() func(context.Context, port.Principal, []byte) (string, int, error) {
	reader := pdf.NewReader()
	return func(ctx context.Context, who port.Principal, document []byte) (string, int, error) {
		return reader.Text(ctx, string(who.Tenant)+"\n"+string(who.ID), document)
	}
}
