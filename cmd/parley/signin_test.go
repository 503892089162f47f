package main

import (
	"slices"
	"testing"

	"parley/access"
	"parley/config"
)

// TestRolesHaveTheSameNames: those that settings can name are those there are.
func TestRolesHaveTheSameNames(t *testing.T) {
	if !slices.Equal(config.KnownRoles, access.Roles()) {
		t.Errorf("settings know %v, access knows %v", config.KnownRoles, access.Roles())
	}
}
