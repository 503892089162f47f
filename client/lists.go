package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"parley"
	"parley/port"
)

// Me describes the caller and the server.
type Me struct {
	User        parley.PrincipalID `json:"user"`
	Tenant      parley.TenantID    `json:"tenant"`
	Roles       []parley.UserRole  `json:"roles"`
	Permissions []parley.Action    `json:"permissions"`
	Project     string             `json:"project,omitempty"` // root of the tenant's first project
	Version     string             `json:"version"`
	Auth        string             `json:"auth"`  // local or jwt
	Model       string             `json:"model"` // default model
	Demo        bool               `json:"demo"`  // the default model is the scripted demo
	Hint        string             `json:"hint,omitempty"`
}

// Me returns who the caller is, and what the server is.
func (c *Client) Me(ctx context.Context) (m Me, err error) {
	return m, c.do(ctx, request{method: http.MethodGet, path: "/me", answer: &m})
}

// An Agent is an agent that the user may talk to.
type Agent struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Model       string `json:"model,omitempty"`
	Status      string `json:"status"`            // running, stopped or unreachable
	Problem     string `json:"problem,omitempty"` // error in its file
	Made        bool   `json:"made,omitempty"`    // created by API
	Project     string `json:"project,omitempty"` // root of its project, if the tenant has several
	// Definition is set only by Client.Agent, with the parts that the caller may read.
	Definition *parley.Agent `json:"definition,omitempty"`
}

// Agents lists the agents of a project, given as a root or an id. An empty project is the first. The first agent is the
// default.
func (c *Client) Agents(ctx context.Context, project string) ([]Agent, error) {
	var answer struct{ Agents []Agent }
	err := c.do(ctx, request{method: http.MethodGet, path: "/agents", query: query("project", project),
		answer: &answer})
	return answer.Agents, err
}

// Agent describes one agent of a project.
func (c *Client) Agent(ctx context.Context, project, name string) (a Agent, err error) {
	return a, c.do(ctx, request{method: http.MethodGet, path: "/agents/" + url.PathEscape(name),
		query: query("project", project), answer: &a})
}

// SetAgent starts or stops an agent. A stopped agent accepts no inputs.
func (c *Client) SetAgent(ctx context.Context, project, name string, running bool) (a Agent, err error) {
	verb := "stop"
	if running {
		verb = "start"
	}
	return a, c.do(ctx, request{method: http.MethodPost, path: "/agents/" + url.PathEscape(name) + "/" + verb,
		query: query("project", project), body: fields{}, answer: &a})
}

// Models lists the models of the configured vendors.
func (c *Client) Models(ctx context.Context) (list []port.ModelInfo, err error) {
	return list, c.do(ctx, request{method: http.MethodGet, path: "/models", answer: &list})
}

// Projects lists the projects of the tenant, the first one first.
func (c *Client) Projects(ctx context.Context) (list []port.Project, err error) {
	return list, c.do(ctx, request{method: http.MethodGet, path: "/projects", answer: &list})
}

// ProjectName returns the name of a project, given as a root or an id. An empty project is the first. If the server no
// longer has the project, the name is its root.
func ProjectName(projects []port.Project, project string) string {
	for i, p := range projects {
		if p.Root == project || p.ID == project || project == "" && i == 0 {
			return p.Name
		}
	}
	return project
}

// Missions lists the missions of a project, given as a root or an id, the newest first. port.EveryProject lists the
// missions of all projects, including projects that the server no longer has.
func (c *Client) Missions(ctx context.Context, project string) ([]port.MissionInfo, error) {
	var answer struct{ Missions []port.MissionInfo }
	err := c.do(ctx, request{method: http.MethodGet, path: "/missions", query: query("project", project),
		answer: &answer})
	return answer.Missions, err
}

// ClearMission ends the active mission of a project, even if the server no longer has the project.
func (c *Client) ClearMission(ctx context.Context, project string) error {
	return c.do(ctx, request{method: http.MethodDelete, path: "/missions", query: query("project", project)})
}

// A Skill is a text that a message can call by its name: /name.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Hint        string `json:"argument_hint,omitempty"`
	People      bool   `json:"user_invocable"` // users may call it, not only models
}

// Skills lists the skills of a project, given as a root or an id.
func (c *Client) Skills(ctx context.Context, project string) ([]Skill, error) {
	var answer struct{ Skills []Skill }
	err := c.do(ctx, request{method: http.MethodGet, path: "/skills", query: query("project", project),
		answer: &answer})
	return answer.Skills, err
}

// Folder lists a folder of a project, given as a root or an id. An empty path is the top of the project.
func (c *Client) Folder(ctx context.Context, project, path string) ([]port.FileEntry, error) {
	var entries []port.FileEntry
	err := c.do(ctx, request{method: http.MethodGet, path: "/api/files", elsewhere: true,
		query: query("project", project, "path", path), answer: &entries})
	return entries, err
}

// Settings returns the settings of the tenant.
func (c *Client) Settings(ctx context.Context) (s parley.Settings, err error) {
	return s, c.do(ctx, request{method: http.MethodGet, path: "/settings", answer: &s})
}

// A Run is everything from one input until its end.
type Run struct {
	ID string `json:"id"` // <session>.<seq>
	port.RunInfo
}

// A RunQuery filters a list of runs.
type RunQuery struct {
	Session parley.SessionID
	Agent   string
	Project string // root or id
	Parent  string // id of a run, for the runs of its sub-agents
	Open    bool   // only runs that have not ended
	Before  time.Time
	Limit   int // zero: 50
}

// Runs lists runs, the newest first.
func (c *Client) Runs(ctx context.Context, q RunQuery) ([]Run, error) {
	values := query("session", string(q.Session), "agent", q.Agent, "project", q.Project, "parent", q.Parent, "limit",
		number(q.Limit))
	if q.Open {
		values.Set("open", "1")
	}
	if !q.Before.IsZero() {
		values.Set("before", q.Before.Format(time.RFC3339Nano))
	}
	var answer struct{ Runs []Run }
	err := c.do(ctx, request{method: http.MethodGet, path: "/runs", query: values, answer: &answer})
	return answer.Runs, err
}

// Run describes one run.
func (c *Client) Run(ctx context.Context, id string) (r Run, err error) {
	return r, c.do(ctx, request{method: http.MethodGet, path: "/runs/" + url.PathEscape(id), answer: &r})
}

// CancelRun ends one run.
func (c *Client) CancelRun(ctx context.Context, id string) (port.Receipt, error) {
	return c.command(ctx, "/runs/"+url.PathEscape(id)+"/cancel", "", fields{})
}

// A Node is one of the servers that share a database.
type Node struct {
	ID       string    `json:"id"`
	Address  string    `json:"address"`
	Version  string    `json:"version"`
	Sessions int       `json:"sessions"` // number of sessions in memory
	Projects []string  `json:"projects"` // roots of its projects
	Since    time.Time `json:"since"`
	Draining bool      `json:"draining,omitempty"` // about to stop
	Differs  []string  `json:"differs,omitempty"`  // differences from the answering node: version, agents
}

// Usage returns the usage of a UTC day such as 2026-11-30, and what is left of the quotas. An empty day is today.
func (c *Client) Usage(ctx context.Context, day string) (report port.UsageReport, err error) {
	query := url.Values{}
	if day != "" {
		query.Set("day", day)
	}
	err = c.do(ctx, request{method: http.MethodGet, path: "/usage", query: query, answer: &report})
	return report, err
}

// Erase deletes the messages of a user for good.
func (c *Client) Erase(ctx context.Context, user parley.PrincipalID) (report port.ErasureReport, err error) {
	err = c.do(ctx, request{method: http.MethodPost, path: "/users/" + url.PathEscape(string(user)) + "/erase",
		body: struct{}{}, answer: &report})
	return report, err
}

// Retain applies the tenant's retention rules now. With dry, it only reports what they would delete.
func (c *Client) Retain(ctx context.Context, dry bool) (report port.RetentionReport, err error) {
	r := request{method: http.MethodPost, path: "/retention", body: struct{}{}, answer: &report}
	if dry {
		r.method, r.body = http.MethodGet, nil
	}
	err = c.do(ctx, r)
	return report, err
}

// LegalHolds lists the legal holds of the tenant.
func (c *Client) LegalHolds(ctx context.Context) ([]port.LegalHold, error) {
	var answer struct{ Holds []port.LegalHold }
	err := c.do(ctx, request{method: http.MethodGet, path: "/holds", answer: &answer})
	return answer.Holds, err
}

// Hold sets or releases a legal hold.
func (c *Client) Hold(ctx context.Context, change port.HoldChange) (held port.LegalHold, err error) {
	err = c.do(ctx, request{method: http.MethodPost, path: "/holds", answer: &held, body: fields{"kind": change.Kind,
		"id": change.ID, "reason": change.Reason, "release": change.Release}})
	return held, err
}

// Nodes lists the living servers that share the database.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	var answer struct{ Nodes []Node }
	err := c.do(ctx, request{method: http.MethodGet, path: "/nodes", answer: &answer})
	return answer.Nodes, err
}
