//go:build !linux

package main

import "errors"

type benchCommand struct {
	Args []string `arg:"" optional:"" passthrough:"" help:"Ignored."`
}

// Run reports that the load generator needs Linux: it uses Linux sockets and clocks.
func (benchCommand) Run(*program) error {
	return errors.New("parley bench runs on Linux only; to measure this server, run it there with --server")
}
