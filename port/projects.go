package port

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"parley"
)

// A Project is a folder that agents of one tenant work in. Its agents, skills,
// missions and files are its own. A session belongs to the project of its first
// input, and stays there.
type Project struct {
	ID   string `json:"id"`   // short, for URLs; derived from Root
	Root string `json:"root"` // absolute; names the project in logs
	Name string `json:"name"` // for people

	// First: sessions of the tenant without a project belong to this project. A
	// session has no project if it was opened while this was the only one.
	First bool `json:"-"`
}

// Is reports whether the project has this root or id.
func (p Project) Is(named string) bool { return named == p.Root || named == p.ID }

// Keys returns the values of Project in the sessions of the project. The zero
// Project has none: it stands for every session.
func (p Project) Keys() []string {
	switch {
	case p.Root == "":
		return nil
	case p.First:
		return []string{p.Root, ""}
	}
	return []string{p.Root}
}

// has reports whether an event of the tenant's session concerns the project.
// Events without a project concern every project.
func (p Project) has(body parley.EventBody) bool {
	of := p.Root
	switch b := body.(type) {
	case parley.MissionSet:
		of = b.Project
	case parley.MissionCleared:
		of = b.Project
	case parley.AgentPrompted:
		of = b.Project
	case parley.OverrideSet:
		of = b.Project
	}
	return slices.Contains(p.Keys(), of)
}

// Concerns reports whether an event belongs to the project. session is the root
// with which the session of the event was opened.
func (p Project) Concerns(e parley.Event, session string) bool {
	if e.Session == parley.TenantSession {
		return p.has(e.Body)
	}
	return slices.Contains(p.Keys(), session)
}

// NewProject returns the project at a root.
func NewProject(root, name string) Project {
	sum := sha256.Sum256([]byte(root))
	return Project{ID: hex.EncodeToString(sum[:6]), Root: root, Name: name}
}
