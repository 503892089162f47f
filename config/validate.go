package config

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Validate is called by kong during parsing. If all settings are valid, it
// creates the data folder, because that is the only way to find out whether it
// can be created.
func (s *Serve) Validate() error {
	if err := s.Check(); err != nil {
		return err
	}
	if err := os.MkdirAll(s.Data, 0o700); err != nil {
		return fmt.Errorf("--data %s cannot be made: %w; name a folder that you may write to", s.Data, err)
	}
	return nil
}

// Check reports all mistakes, each with the flag, its value and what to do
// about it.
func (s *Settings) Check() error {
	return errors.Join(
		s.validateAccess(),
		s.validateOIDC(s.Listen),
		s.validateListen(),
		s.validateAdmin(),
		s.validateNodes(),
		s.validateMetrics(),
		s.validatePublic(),
		s.validateFolders(),
		s.validateProjects(),
		s.CheckModels(),
		s.Autonomy.validateAutonomy(),
		s.IdlePrompts.validateIdle(),
		s.validateTimes(),
		s.Store.Check(),
		s.CheckToolServers(),
	)
}

// Check reports mistakes in the settings of the store.
func (s *Store) Check() error {
	_, err := s.MasterKeys()
	return errors.Join(s.validateTenant(), s.validateDatabase(), s.validateKey(), err)
}

func (s *Settings) validateListen() error {
	_, port, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return fmt.Errorf("--listen %s is not an address; write HOST:PORT, like 127.0.0.1:8080", s.Listen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("--listen %s has no port; use a number from 0 to 65535, 0 for any free one", s.Listen)
	}
	return s.validateReach(s.Listen)
}

func (s *Store) validateKey() error {
	if s.ServerKey != "" && len(s.ServerKey) < 32 {
		return fmt.Errorf("--server-key has %d bytes, which can be guessed; use at least 32 random ones",
			len(s.ServerKey))
	}
	return nil
}

// validateNodes does not repeat the address, which may hold a password.
func (s *Settings) validateNodes() error {
	if s.NATSURL != "" && s.DatabaseURL == "" {
		return errors.New("--nats-url is for several nodes, which share a PostgreSQL database; set --database-url too")
	}
	return nil
}

// validateAdmin allows profiles only on loopback addresses, in every mode,
// because they show the inside of the server.
func (s *Settings) validateAdmin() error {
	if s.AdminListen == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(s.AdminListen)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--admin-listen %s is not an address of this machine alone; use one like 127.0.0.1:6060",
			s.AdminListen)
	}
	return nil
}

// validateDatabase does not repeat the address, which may hold a password.
func (s *Store) validateDatabase() error {
	scheme, _, _ := strings.Cut(string(s.DatabaseURL), "://")
	if s.DatabaseURL != "" && scheme != "postgres" && scheme != "postgresql" {
		return errors.New("--database-url is not of PostgreSQL; write postgres://USER:PASSWORD@HOST/DATABASE, or " +
			"leave it out to keep sessions in the data folder")
	}
	if s.DatabasePool < 2 {
		return fmt.Errorf("--database-pool %d is too few; use at least 2", s.DatabasePool)
	}
	return nil
}

func (s *Store) validateTenant() error {
	if !s.DefaultTenant.Valid() {
		return fmt.Errorf("--default-tenant %s is no tenant id; use up to 63 of a-z, 0-9 and -, not beginning with -",
			s.DefaultTenant)
	}
	return nil
}

// validateFolders accepts a missing default folder of agents, but not a missing
// folder that was named. Otherwise a typing error would silently serve the
// built-in agent.
func (s *Settings) validateFolders() error {
	if !isFolder(s.Workspace) {
		return fmt.Errorf("--workspace %s is not a folder; make it or name another", s.Workspace)
	}
	if s.Agents != "" && s.Agents != s.agentsInWorkspace() && !isFolder(s.Agents) {
		return fmt.Errorf("--agents %s is not a folder; make it, or leave it out to use %s", s.Agents,
			s.agentsInWorkspace())
	}
	return nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (s *Settings) validateTimes() error {
	switch {
	case s.Drain < 0:
		return fmt.Errorf("--drain %s is negative; use 0s to wait for nothing", s.Drain)
	case s.Idle <= 0:
		return fmt.Errorf("--idle %s would unload sessions in use; use a second or more", s.Idle)
	case s.KeepPieces != 0 && s.KeepPieces < time.Minute:
		return fmt.Errorf("--keep-pieces %s is too short for clients that come back; use a minute or more, or 0s to "+
			"keep them for ever", s.KeepPieces)
	}
	return nil
}
