//go:build !linux

package workspacetest

func exchange(a, b string) error { return exchangeInSteps(a, b) }
