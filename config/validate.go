package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// Validate says everything that is wrong, each with the flag, its value and
// what to do about it. kong calls it while parsing. It makes the data folder,
// if nothing else is wrong: that it can be made is only known by making it.
func (s *Serve) Validate() error {
	err := errors.Join(
		s.validateAuth(),
		s.validateListen(),
		s.validateTenant(),
		s.validateFolders(),
		s.validateModel(),
		s.validateTimes(),
		s.validateDatabase(),
	)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Data, 0o700); err != nil {
		return fmt.Errorf("--data %s cannot be made: %w; name a folder that you may write to", s.Data, err)
	}
	return nil
}

func (s *Serve) validateAuth() error {
	if s.Auth != "local" {
		return fmt.Errorf("--auth %s is not supported by this release; the only mode is local", s.Auth)
	}
	return nil
}

// validateListen keeps local mode, in which whoever can connect may do
// everything, on this machine.
func (s *Serve) validateListen() error {
	host, port, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return fmt.Errorf("--listen %s is not an address; write HOST:PORT, like 127.0.0.1:8080", s.Listen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("--listen %s has no port; use a number from 0 to 65535, 0 for any free one", s.Listen)
	}
	if host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("--listen %s could be reached from other machines, where --auth local would let everybody in; use 127.0.0.1:%s", s.Listen, port)
}

// validateDatabase does not repeat the address: it may hold a password.
func (s *Serve) validateDatabase() error {
	if s.DatabaseURL != "" && !strings.HasPrefix(s.DatabaseURL, "postgres://") && !strings.HasPrefix(s.DatabaseURL, "postgresql://") {
		return errors.New("--database-url is not of PostgreSQL; write postgres://USER:PASSWORD@HOST/DATABASE, or leave it out to keep sessions in the data folder")
	}
	if s.DatabasePool < 2 {
		return fmt.Errorf("--database-pool %d is too few; use at least 2", s.DatabasePool)
	}
	return nil
}

func (s *Serve) validateTenant() error {
	if !s.DefaultTenant.Valid() {
		return fmt.Errorf("--default-tenant %s is no tenant id; use up to 63 of a-z, 0-9 and -, not beginning with -", s.DefaultTenant)
	}
	return nil
}

// validateFolders lets the default agents folder be missing, not a named one:
// a typing error would otherwise quietly serve the built-in agent.
func (s *Serve) validateFolders() error {
	if !isFolder(s.Workspace) {
		return fmt.Errorf("--workspace %s is not a folder; make it or name another", s.Workspace)
	}
	if s.Agents != "" && s.Agents != s.agentsInWorkspace() && !isFolder(s.Agents) {
		return fmt.Errorf("--agents %s is not a folder; make it, or leave it out to use %s", s.Agents, s.agentsInWorkspace())
	}
	return nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// validateModel refuses a model that nobody was named to call: to answer as
// the demo instead would be to answer as somebody else.
func (s *Serve) validateModel() error {
	switch {
	case s.Provider != "" && s.Provider != "demo":
		return fmt.Errorf("--provider %s is not supported by this release; leave it out or use demo", s.Provider)
	case s.Provider == "" && s.Model != "":
		return fmt.Errorf("--model %s belongs to no provider of this release; leave it out, or use --provider demo to have the demo answer to that name", s.Model)
	}
	return nil
}

func (s *Serve) validateTimes() error {
	switch {
	case s.Drain < 0:
		return fmt.Errorf("--drain %s is negative; use 0s to wait for nothing", s.Drain)
	case s.Idle <= 0:
		return fmt.Errorf("--idle %s would unload sessions in use; use a second or more", s.Idle)
	}
	return nil
}
