package parley

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// An Agent is the definition of an agent. A run keeps the definition it started
// with, by digest.
type Agent struct {
	Name         string       `json:"name"`
	Description  string       `json:"description,omitempty"`
	Model        string       `json:"model,omitempty"` // empty: the server's default
	Fallback     []string     `json:"fallback_models,omitempty"`
	Tools        []string     `json:"tools"`              // nil or "*": all tools; empty: no tools
	Approval     ApprovalMode `json:"approval,omitempty"` // empty: the tenant's default
	Limits       AgentLimits  `json:"limits,omitzero"`
	Allow        *AgentAllow  `json:"allow,omitempty"` // nil: every principal with agents:message
	Instructions string       `json:"instructions,omitempty"`
	Delegates    []string     `json:"delegates,omitempty"` // nil: every agent without an allow list
	// Trust lists the sources that the agent trusts besides the conversation.
	// Content from them does not make its calls ask a person. nil: defaultTrust.
	Trust   []Source `json:"trust,omitzero"`
	Address string   `json:"address,omitempty"` // of a remote agent: tcp://host:port or unix:///path
	// Command starts a remote agent that speaks the Agent Client Protocol. Env
	// lists the names of the server's environment variables that the program gets.
	// Only an agent file can set them.
	Command []string `json:"command,omitempty"`
	Env     []string `json:"env,omitempty"`
	// IdlePrompt is the input that the agent gets when it is idle during a
	// mission; empty: none. IdleSeconds is how long it must be idle first; 0:
	// defaultIdleInterval.
	IdlePrompt  string   `json:"idle_prompt,omitempty"`
	IdleSeconds int64    `json:"idle_interval_secs,omitempty"`
	Autonomy    Autonomy `json:"autonomy,omitzero"`
	// Webhook is called when a run of the agent ends or needs a person. Only an agent file can set it.
	Webhook *AgentWebhook `json:"webhook,omitempty"`
}

// An ApprovalMode determines which tool calls of an agent a person has to approve.
// An unknown mode counts as the strictest.
type ApprovalMode string

const (
	ApprovalSuggest  ApprovalMode = "suggest"   // edits, and commands that do more than read, need approval
	ApprovalAutoEdit ApprovalMode = "auto-edit" // edits inside the workspace run without approval
	ApprovalFullAuto ApprovalMode = "full-auto" // every call runs without approval, commands in the sandbox
)

const approvalModes = string(ApprovalSuggest + ", " + ApprovalAutoEdit + " or " + ApprovalFullAuto)

func (m ApprovalMode) known() bool {
	return m == ApprovalSuggest || m == ApprovalAutoEdit || m == ApprovalFullAuto
}

// ParseApprovalMode parses a mode. Its error lists the modes and completes the phrase "approval is".
func ParseApprovalMode(text string) (ApprovalMode, error) {
	if mode := ApprovalMode(text); mode.known() {
		return mode, nil
	}
	return "", fmt.Errorf("%s, not %q", approvalModes, text)
}

type AgentLimits struct {
	Turns   int     `json:"turns,omitempty"`
	Tokens  int64   `json:"tokens,omitempty"`
	Minutes float64 `json:"minutes,omitempty"`
	CostUSD float64 `json:"cost_usd,omitempty"`
	// Set from the settings of the tenant; 0: not set.
	Compact int `json:"compact,omitempty"` // percent of the context window
	Depth   int `json:"depth,omitempty"`   // levels of sub-agents; negative: none
}

// AgentAllow limits access to an agent to principals that have one of the roles or
// are one of the users.
type AgentAllow struct {
	Roles []UserRole    `json:"roles,omitempty"`
	Users []PrincipalID `json:"users,omitempty"`
}

// Check reports an empty or invalid list.
func (a AgentAllow) Check() error {
	switch {
	case len(a.Roles)+len(a.Users) == 0:
		return errors.New("allow is empty, so no user could talk to this agent")
	case slices.Contains(a.Roles, ""):
		return errors.New("allow.roles has a name that is empty")
	}
	for _, user := range a.Users {
		if IsBlank(string(user)) || len(user) > maxUser {
			return fmt.Errorf("the id of a user in allow.users has 1 to %d bytes, not %.20q", maxUser, user)
		}
	}
	return nil
}

// An AgentRef names one definition of an agent.
type AgentRef struct {
	Name   string `json:"name"`
	Digest string `json:"digest,omitempty"`
	Model  string `json:"model,omitempty"`
	Turns  int    `json:"turns,omitempty"`
	// Limits of the run including all sub-agents below it; 0: no limit.
	Tokens  int64 `json:"tokens,omitempty"`
	Seconds int64 `json:"seconds,omitempty"`
	Micros  int64 `json:"micros,omitempty"` // millionths of a US dollar
	// Compact is the percentage of the context window at which the conversation is compacted; 0: compactAt.
	Compact int `json:"compact,omitempty"`
	Depth   int `json:"depth,omitempty"` // levels of sub-agents; 0: maxDepth
	// Files: each run reports at its end how it changed files.
	Files bool `json:"files,omitempty"`
	// Titles: its model writes the title of the conversation.
	Titles bool `json:"titles,omitempty"`
	// Remote: the agent is another program. See remote.go.
	Remote bool `json:"remote,omitempty"`
	// Autonomy limits autonomous messages, within the limits of the server.
	Autonomy Autonomy `json:"autonomy,omitzero"`
	// Trust is the list of sources that the agent trusts.
	Trust trust `json:"trust,omitempty"`
	// Hook is the agent's webhook as the log records it.
	Hook Hook `json:"hook,omitzero"`
}

// Elsewhere reports whether the agent is remote: another program decides what it
// says and does.
func (a Agent) Elsewhere() bool { return a.Address != "" || len(a.Command) > 0 }

// Digest identifies the definition by its content.
func (a Agent) Digest() string {
	raw, _ := json.Marshal(a) // strings and ints only: cannot fail
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}

func (a Agent) Ref() AgentRef {
	var hook Hook
	if w := a.Webhook; w != nil {
		hook = HookOf(w.Target, w.Events)
	}
	return AgentRef{Name: a.Name, Digest: a.Digest(), Model: a.Model, Turns: a.Limits.Turns,
		Tokens: a.Limits.Tokens, Seconds: int64(a.Limits.Minutes * 60), Micros: int64(a.Limits.CostUSD * 1e6),
		Compact: a.Limits.Compact, Depth: a.Limits.Depth,
		Remote: a.Elsewhere(), Autonomy: a.Autonomy, Trust: trustOf(a.Trust), Hook: hook}
}

var agentPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// ValidAgentName reports whether a name is valid for an agent, in files and in URLs.
func ValidAgentName(name string) bool { return agentPattern.MatchString(name) }
