//go:build !linux

package main

import "errors"

type benchCommand struct {
	Args []string `arg:"" optional:"" passthrough:"" help:"Ignored."`
}

// Run says that the load generator is for Linux: its sockets and its clock are those of Linux.
func (benchCommand) Run(*program) error {
	return errors.New("parley bench runs on Linux only; to measure this server, run it there with --server")
}
