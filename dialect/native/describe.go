package native

import (
	"net/http"

	"parley"
	"parley/dialect"
	"parley/port"
)

// Request bodies that several routes have.
type (
	noBody   struct{}
	idleBody struct {
		IdlePrompt  *string `json:"idle_prompt,omitempty"`
		IdleSeconds *int64  `json:"idle_interval_secs,omitempty"`
	}
	inputBody struct {
		Content      string          `json:"content"`
		Agent        string          `json:"agent,omitempty"`
		Request      string          `json:"request,omitempty"`
		Busy         parley.BusyMode `json:"busy,omitempty"`
		Mode         parley.RunMode  `json:"mode,omitempty"`
		Model        string          `json:"model,omitempty"`
		Instructions string          `json:"instructions,omitempty"`
		Tools        []toolBody      `json:"tools,omitempty"`  // tools that the client carries out
		Images       []string        `json:"images,omitempty"` // base64 or data URLs of PNG, JPEG, GIF or WebP
		// ClientCalls: the client also carries out the agent's own tools.
		ClientCalls bool `json:"client_calls,omitempty"`
	}
	toolBody struct {
		Name        string         `json:"name"`
		Description string         `json:"description,omitempty"`
		Parameters  map[string]any `json:"parameters,omitempty"` // a JSON Schema
	}
	keyBody struct {
		Key     string `json:"key,omitempty"`      // empty: the key stored for this address
		BaseURL string `json:"base_url,omitempty"` // empty: the vendor's own address
	}
	serversOffBody struct {
		Off []string `json:"off"`
	}
	status struct {
		Status string `json:"status"`
	}
)

const ok, created, accepted = http.StatusOK, http.StatusCreated, http.StatusAccepted

// Operations returns the descriptions of all routes.
func Operations() map[string]dialect.Operation {
	all := map[string]dialect.Operation{
		"GET /api/v1/me":       {Summary: "The caller, and the server", Status: ok, Answer: me{}},
		"GET /api/v1/projects": {Summary: "The projects of the tenant", Status: ok, Answer: []port.Project{}},
		"GET /api/v1/nodes": {Summary: "The servers that share the database", Status: ok, Answer: struct {
			Nodes []Node `json:"nodes"`
		}{}},
		"GET /api/v1/usage": {Summary: "The usage of a day, and the rest of the quotas", Status: ok,
			Query: []string{"day"}, Answer: port.UsageReport{}},
		"GET /api/v1/skills": {Summary: "The skills that can be called", Status: ok, Answer: struct {
			Skills   []skillInfo `json:"skills"`
			Problems []string    `json:"problems"`
		}{}},
		"GET /api/v1/models": {Summary: "The models that can be called", Status: ok, Answer: []port.ModelInfo{}},
		"GET /api/v1/mcp": {Summary: "MCP servers and their tools", Status: ok, Answer: struct {
			Servers []port.ToolServer `json:"servers"`
		}{}},
		"POST /api/v1/mcp/{id}/accept": {Summary: "Accept changed tools of an MCP server", Status: ok,
			Body: struct {
				Tools map[string]string `json:"tools"` // tool name to the digest that was shown
			}{}, Answer: struct {
				Servers []port.ToolServer `json:"servers"`
			}{}},
		"GET /api/v1/model-keys": {Summary: "Model vendors and the sources of their keys; local mode only",
			Status: ok, Answer: struct {
				Keys []port.ModelKey `json:"keys"`
			}{}},
		"PUT /api/v1/model-keys/{id}": {Summary: "Store the key of a vendor; local mode only", Status: ok, Body: keyBody{},
			Answer: port.ModelKey{}},
		"DELETE /api/v1/model-keys/{id}": {Summary: "Remove the key of a vendor; local mode only", Status: ok,
			Answer: struct {
				Removed bool `json:"removed"`
			}{}},
		"POST /api/v1/model-keys/{id}/test": {Summary: "Ask a vendor for its models with a key, or with the one in use; local mode only",
			Status: ok, Body: keyBody{}, Answer: port.ModelKeyTrial{}},
		"PUT /api/v1/mcp/{id}": {Summary: "Add or change an MCP server; empty values of env and headers stay as they are",
			Status: ok, Body: port.ServerSetup{}, Answer: struct {
				Servers []port.ToolServer `json:"servers"`
			}{}},
		"DELETE /api/v1/mcp/{id}": {Summary: "Remove an MCP server that was added by PUT", Status: ok, Answer: struct {
			Servers []port.ToolServer `json:"servers"`
		}{}},
		"POST /api/v1/mcp/{id}/test": {Summary: "Start an MCP server, list its tools and end it", Status: ok,
			Body: port.ServerSetup{}, Answer: port.ServerTrial{}},
		"GET /api/v1/settings": {Summary: "The settings of the tenant", Status: ok, Answer: parley.Settings{}},
		"PATCH /api/v1/settings": {Summary: "Change settings of the tenant; null resets one", Status: ok,
			Body: struct {
				Model    *string `json:"model,omitempty"`
				Approval *string `json:"approval,omitempty"`
				Turns    *int    `json:"turns,omitempty"`
				Compact  *int    `json:"compact_at,omitempty"`
				Depth    *int    `json:"max_delegation_depth,omitempty"`
			}{}, Answer: parley.Settings{}},
	}
	for _, more := range []map[string]dialect.Operation{sessionOperations(), runOperations(), agentOperations(),
		securityOperations()} {
		for pattern, o := range more {
			all[pattern] = o
		}
	}
	return all
}

func sessionOperations() map[string]dialect.Operation {
	return map[string]dialect.Operation{
		"GET /api/v1/sessions": {Summary: "Sessions, most recently changed first", Status: ok,
			Query: []string{"search", "limit", "transient", "pinned", "archived", "project"}, Answer: struct {
				Sessions []port.Summary `json:"sessions"`
			}{}},
		"GET /api/v1/search": {Summary: "Messages with all these words and \"phrases\", newest first", Status: ok,
			Query: []string{"q", "limit", "cursor", "project"}, Answer: searchAnswer{}},
		"POST /api/v1/sessions": {Summary: "Open a session, or return the one of that id", Status: created,
			Body: struct {
				ID    string `json:"id,omitempty"`
				Agent string `json:"agent,omitempty"`
				Title string `json:"title,omitempty"`
			}{}, Answer: port.Summary{}},
		"GET /api/v1/sessions/{id}": {Summary: "One session", Status: ok, Answer: port.Summary{}},
		"PATCH /api/v1/sessions/{id}": {Summary: "Rename a session", Status: ok, Body: struct {
			Title string `json:"title"`
		}{}, Answer: port.Summary{}},
		"PUT /api/v1/sessions/{id}/marks": {Summary: "Pin or archive a session, or mark it as read, for the caller alone",
			Status: ok, Body: marksBody{}, Answer: port.Marks{}},
		"DELETE /api/v1/sessions/{id}": {Summary: "Delete a session", Status: accepted, Answer: port.Receipt{}},
		"POST /api/v1/sessions/{id}/fork": {Summary: "Open a session with the conversation of this one", Status: created,
			Body: struct {
				At     parley.Seq `json:"at,omitempty"`
				Title  string     `json:"title,omitempty"`
				Branch bool       `json:"branch,omitempty"`
			}{}, Answer: port.Summary{}},
		"GET /api/v1/sessions/{id}/branches": {Summary: "The caller's branches of a session at some of its events",
			Status: ok, Query: []string{"at"}, Answer: struct {
				Branches []branchPoint `json:"branches"`
			}{}},
		"POST /api/v1/sessions/{id}/inputs": {Summary: "Send a message", Status: accepted, Body: inputBody{},
			Answer: port.Receipt{}},
		"POST /api/v1/sessions/{id}/cancel": {Summary: "Cancel the run, or withdraw a waiting input", Status: accepted,
			Body: struct {
				Request string `json:"request,omitempty"`
				Run     int64  `json:"run,omitempty"`
			}{}, Answer: port.Receipt{}},
		"POST /api/v1/sessions/{id}/halt": {Summary: "Halt a session", Status: accepted, Body: struct {
			Reason string `json:"reason,omitempty"`
		}{}, Answer: port.Receipt{}},
		"POST /api/v1/sessions/{id}/reopen": {Summary: "Reopen a halted session", Status: accepted, Body: noBody{},
			Answer: port.Receipt{}},
		"POST /api/v1/sessions/{id}/compact": {Summary: "Compact the model's context", Status: accepted, Body: noBody{},
			Answer: port.Receipt{}},
		"DELETE /api/v1/inputs/{id}": {Summary: "Withdraw a waiting message", Status: accepted,
			Answer: port.Receipt{}},
		"GET /api/v1/sessions/{id}/log": {Summary: "The log of a session, as JSON lines or server-sent events",
			Status: ok,
			Query:  []string{"after", "follow", "scope"}, Media: "application/jsonl", Events: true},
		"GET /api/v1/sessions/{id}/export": {Summary: "The conversation as a file: markdown, html or jsonl", Status: ok,
			Query: []string{"format"}, Media: "text/markdown"},
		"GET /api/v1/log": {Summary: "The events of all sessions of the tenant", Status: ok,
			Query: []string{"after", "project"}, Media: "application/jsonl", Events: true},
		"GET /api/v1/sessions/{id}/plan": {Summary: "The session's plan", Status: ok, Answer: parley.Plan{}},
		"POST /api/v1/sessions/{id}/plan": {Summary: "Decide a plan that waits", Status: accepted, Body: struct {
			Decision string `json:"decision"` // approve, reject or edit
			Text     string `json:"text,omitempty"`
			Agent    string `json:"agent,omitempty"`
			Fresh    bool   `json:"fresh,omitempty"`
		}{}, Answer: port.Receipt{}},
		"GET /api/v1/sessions/{id}/grants": {Summary: "The grants of a session", Status: ok,
			Answer: struct {
				Grants []parley.GrantInfo `json:"grants"`
			}{}},
		"DELETE /api/v1/sessions/{id}/grants/{grant}": {Summary: "Revoke a grant", Status: accepted,
			Answer: port.Receipt{}},
		"GET /api/v1/sessions/{id}/webhook": {Summary: "The webhook of a session", Status: ok,
			Answer: port.WebhookInfo{}},
		"PUT /api/v1/sessions/{id}/webhook": {Summary: "Set the webhook of a session; only this answer has the secret",
			Status: ok, Body: struct {
				URL    string   `json:"url"`
				Events []string `json:"events,omitempty"`
				Secret string   `json:"secret,omitempty"`
			}{}, Answer: port.WebhookInfo{}},
		"POST /api/v1/sessions/{id}/webhook/test": {Summary: "Send a signed sample to the webhook of a session", Status: ok,
			Body: noBody{}, Answer: port.WebhookTrial{}},
		"GET /api/v1/sessions/{id}/servers": {Summary: "The tool servers that a session does not use", Status: ok,
			Answer: serversOffBody{}},
		"PUT /api/v1/sessions/{id}/servers": {Summary: "Switch tool servers off for a session, and all others on",
			Status: accepted, Body: serversOffBody{}, Answer: port.Receipt{}},
		"GET /api/v1/webhooks": {Summary: "Webhooks of sessions, by session", Status: ok,
			Query: []string{"limit", "cursor"}, Answer: webhookList{}},
		"DELETE /api/v1/sessions/{id}/webhook": {Summary: "Remove the webhook of a session", Status: ok,
			Answer: struct {
				Removed bool `json:"removed"`
			}{}},
	}
}

func runOperations() map[string]dialect.Operation {
	type cards = []cardLine
	return map[string]dialect.Operation{
		"GET /api/v1/runs": {Summary: "Runs, newest first", Status: ok,
			Query: []string{"session", "agent", "open", "parent", "before", "limit", "project"}, Answer: struct {
				Runs []runLine `json:"runs"`
			}{}},
		"GET /api/v1/runs/{id}": {Summary: "One run", Status: ok, Answer: runLine{}},
		"POST /api/v1/runs/{id}/cancel": {Summary: "Cancel a run", Status: accepted, Body: noBody{},
			Answer: port.Receipt{}},
		"POST /api/v1/runs/{id}/undo": {Summary: "Undo the file changes of a run", Status: accepted, Body: noBody{},
			Answer: port.Receipt{}},
		"GET /api/v1/runs/{id}/turns/{turn}/request": {Summary: "The model request of a turn, rebuilt from the log",
			Status: ok, Answer: turnRequest{}},
		"GET /api/v1/approvals": {Summary: "Approvals that wait for a person", Status: ok,
			Query: []string{"session", "limit", "project"}, Answer: struct {
				Approvals cards `json:"approvals"`
			}{}},
		"GET /api/v1/questions": {Summary: "Questions that wait for a person", Status: ok,
			Query: []string{"session", "limit", "project"}, Answer: struct {
				Questions cards `json:"questions"`
			}{}},
		"GET /api/v1/calls": {Summary: "Calls of unknown outcome that wait for a person", Status: ok,
			Query: []string{"session", "status", "limit", "project"}, Answer: struct {
				Calls cards `json:"calls"`
			}{}},
		"GET /api/v1/plans": {Summary: "Plans that wait for a decision", Status: ok,
			Query: []string{"session", "limit", "project"}, Answer: struct {
				Plans cards `json:"plans"`
			}{}},
		"POST /api/v1/approvals/{id}": {Summary: "Decide an approval, or have it explained", Status: accepted,
			Body: struct {
				Decision parley.Decision   `json:"decision"` // allow, always, deny, stop or explain
				Scope    parley.GrantScope `json:"scope,omitempty"`
				Note     string            `json:"note,omitempty"`
				Digest   string            `json:"digest,omitempty"`
			}{}, Answer: port.Receipt{}},
		"POST /api/v1/questions/{id}": {Summary: "Answer a question", Status: accepted, Body: struct {
			Answers [][]string `json:"answers"`
		}{}, Answer: port.Receipt{}},
		"POST /api/v1/calls/{id}": {Summary: "Resolve a call of unknown outcome, or return the result of a client tool",
			Status: accepted,
			Body: struct {
				Resolution parley.Resolution `json:"resolution,omitempty"`
				Note       string            `json:"note,omitempty"`
				Result     *string           `json:"result,omitempty"`
				Failed     bool              `json:"failed,omitempty"`
			}{}, Answer: port.Receipt{}},
		"GET /api/v1/timers": {Summary: "Timers", Status: ok, Query: []string{"session", "limit", "project"},
			Answer: struct {
				Timers []port.TimerInfo `json:"timers"`
			}{}},
		"GET /api/v1/timers/{id}":    {Summary: "One timer", Status: ok, Answer: port.TimerInfo{}},
		"DELETE /api/v1/timers/{id}": {Summary: "Cancel a timer", Status: accepted, Answer: port.Receipt{}},
		"GET /api/v1/effects": {Summary: "Effects", Status: ok, Query: []string{"session", "status", "type", "limit", "project"},
			Answer: struct {
				Effects []port.EffectInfo `json:"effects"`
			}{}},
		"GET /api/v1/effects/{id}": {Summary: "One effect", Status: ok, Answer: port.EffectInfo{}},
	}
}

func agentOperations() map[string]dialect.Operation {
	return map[string]dialect.Operation{
		"GET /api/v1/agents": {Summary: "The agents", Status: ok, Query: []string{"project"}, Answer: struct {
			Agents   []agentInfo `json:"agents"`
			Problems []string    `json:"problems,omitempty"`
		}{}},
		"GET /api/v1/agents/{id}": {Summary: "One agent, with its definition", Status: ok,
			Answer: agentDetail{}},
		"POST /api/v1/agents": {Summary: "Create or change an agent of the tenant", Status: created,
			Body: struct{ *parley.Agent }{}, Answer: agentInfo{}},
		"DELETE /api/v1/agents/{id}": {Summary: "Remove an agent of the tenant", Status: ok, Answer: status{}},
		"POST /api/v1/agents/{id}/start": {Summary: "Start an agent", Status: ok, Body: noBody{},
			Answer: agentInfo{}},
		"POST /api/v1/agents/{id}/stop": {Summary: "Stop an agent", Status: ok, Body: noBody{}, Answer: agentInfo{}},
		"GET /api/v1/agents/{id}/override": {Summary: "The override for an agent", Status: ok,
			Answer: parley.IdleChoice{}},
		"POST /api/v1/agents/{id}/override": {Summary: "Replace the override for an agent", Status: ok,
			Body:   idleBody{},
			Answer: parley.IdleChoice{}},
		"GET /api/v1/missions": {Summary: "The missions of the project, newest first; project=* is every project", Status: ok,
			Query: []string{"project"},
			Answer: struct {
				Missions []port.MissionInfo `json:"missions"`
				Note     string             `json:"note,omitempty"`
			}{}},
		"POST /api/v1/missions": {Summary: "Set the mission", Status: created, Body: struct {
			Text   string `json:"text"`
			Agents []struct {
				Agent string `json:"agent"`
				idleBody
			} `json:"agents,omitempty"`
		}{}, Answer: missionReceipt{}},
		"DELETE /api/v1/missions": {Summary: "Clear the active mission, also of a project that the server no longer has", Status: ok,
			Query: []string{"project"}, Answer: port.Receipt{}},
	}
}

func securityOperations() map[string]dialect.Operation {
	return map[string]dialect.Operation{
		"GET /api/v1/audit/events": {Summary: "Audit records, newest first", Status: ok,
			Query: []string{"limit", "action", "resource_type", "source", "user_id", "session", "after", "before",
				"cursor"},
			Answer: struct {
				Events []auditEvent `json:"events"`
				Count  int          `json:"count"`
				Next   string       `json:"next,omitempty"` // cursor of the next page
			}{}},
		"GET /api/v1/users": {Summary: "Users with a session or a record, by id", Status: ok,
			Query: []string{"limit", "cursor"}, Answer: userList{}},
		"POST /api/v1/tickets": {Summary: "A ticket for one connection", Status: created, Body: struct {
			Agent string `json:"agent,omitempty"`
		}{}, Answer: ticketInfo{}},
		"GET /api/v1/retention": {Summary: "The amount of data that retention would delete now", Status: ok,
			Answer: port.RetentionReport{}},
		"POST /api/v1/retention": {Summary: "Carry out retention now", Status: ok, Body: noBody{},
			Answer: port.RetentionReport{}},
		"GET /api/v1/holds": {Summary: "Legal holds of the tenant, oldest first", Status: ok, Answer: holdList{}},
		"POST /api/v1/holds": {Summary: "Set or release a legal hold", Status: ok, Body: holdBody{},
			Answer: port.LegalHold{}},
		"POST /api/v1/users/{id}/erase": {Summary: "Erase the messages and sessions of a user", Status: ok, Body: noBody{},
			Answer: port.ErasureReport{}},
		"POST /api/v1/users/{id}/revoke": {Summary: "Revoke the tokens of a user", Status: ok, Body: noBody{},
			Answer: struct {
				Status string            `json:"status"`
				Spared []parley.UserRole `json:"spared_roles,omitempty"`
			}{}},
	}
}
