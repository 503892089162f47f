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
	ID   string `json:"id"`   // short, for addresses; it follows from Root
	Root string `json:"root"` // absolute; logs name the project by it
	Name string `json:"name"` // for people

	// First: the tenant's sessions that name no project belong to it. Sessions that
	// were opened while it was the only one name none.
	First bool `json:"-"`
}

// Is reports whether a project is meant by a root or an id.
func (p Project) Is(named string) bool { return named == p.Root || named == p.ID }

// Keys are what the sessions of the project say of it. The zero Project has none:
// it stands for every session.
func (p Project) Keys() []string {
	switch {
	case p.Root == "":
		return nil
	case p.First:
		return []string{p.Root, ""}
	}
	return []string{p.Root}
}

// has reports whether an event of the tenant's session concerns a project: those
// about no project concern every one.
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

// Concerns reports whether an event is of a project; session is the root that the
// session of the event was opened with.
func (p Project) Concerns(e parley.Event, session string) bool {
	if e.Session == parley.TenantSession {
		return p.has(e.Body)
	}
	return slices.Contains(p.Keys(), session)
}

// NewProject is the project at a root.
func NewProject(root, name string) Project {
	sum := sha256.Sum256([]byte(root))
	return Project{ID: hex.EncodeToString(sum[:6]), Root: root, Name: name}
}
