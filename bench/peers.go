package bench

import "errors"

// A peer is another server that can do the work of some scenarios.
type peer struct {
	Name string
	Can  []string // scenarios
}

func findPeers(folder string, names []string) (found []*peer, missing []string) { return nil, nil }

func (t *trial) fanRelay(name string, n, window, tokens int) error { return errors.New("later") }

func (t *trial) viewersRelay(n, tokens int) error { return errors.New("later") }

func (t *trial) idleRelay(steps []int) error { return errors.New("later") }
