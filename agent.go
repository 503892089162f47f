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

// An Agent is a definition: who answers, and how. A run keeps the definition it
// started with, by digest.
type Agent struct {
	Name         string       `json:"name"`
	Description  string       `json:"description,omitempty"`
	Model        string       `json:"model,omitempty"` // empty: the server's default
	Fallback     []string     `json:"fallback_models,omitempty"`
	Tools        []string     `json:"tools"`              // nil or "*" for all; empty: none
	Approval     ApprovalMode `json:"approval,omitempty"` // empty: the tenant's
	Limits       AgentLimits  `json:"limits,omitzero"`
	Allow        *AgentAllow  `json:"allow,omitempty"` // nil: everybody who may talk to agents
	Instructions string       `json:"instructions,omitempty"`
	Delegates    []string     `json:"delegates,omitempty"` // nil: to everybody who talks to everybody
	// Trust lists the sources whose content does not make calls ask, besides the
	// conversation; nil: defaultTrust.
	Trust   []Source `json:"trust,omitzero"`
	Address string   `json:"address,omitempty"` // where it runs, if that is elsewhere: tcp://host:port or unix:///path
	// Command is the program that it is, if it is one that speaks the Agent Client
	// Protocol, and Env the names of the server's variables that the program gets.
	// Only a file can name them.
	Command []string `json:"command,omitempty"`
	Env     []string `json:"env,omitempty"`
	// IdlePrompt is what it is told when it is idle during a mission; empty: it
	// is not. IdleSeconds is how long it is left idle; 0: defaultIdleInterval.
	IdlePrompt  string   `json:"idle_prompt,omitempty"`
	IdleSeconds int64    `json:"idle_interval_secs,omitempty"`
	Autonomy    Autonomy `json:"autonomy,omitzero"`
	// Webhook is told how its runs fare. Only a file can name one.
	Webhook *AgentWebhook `json:"webhook,omitempty"`
}

// An ApprovalMode determines which tool calls of an agent a person has to approve.
// An unknown mode counts as the strictest.
type ApprovalMode string

const (
	ApprovalSuggest  ApprovalMode = "suggest"   // edits, and commands that do more than read, ask
	ApprovalAutoEdit ApprovalMode = "auto-edit" // edits inside the workspace run
	ApprovalFullAuto ApprovalMode = "full-auto" // everything runs, commands inside the sandbox
)

const approvalModes = string(ApprovalSuggest + ", " + ApprovalAutoEdit + " or " + ApprovalFullAuto)

func (m ApprovalMode) known() bool {
	return m == ApprovalSuggest || m == ApprovalAutoEdit || m == ApprovalFullAuto
}

// ParseApprovalMode reads a mode. Its error lists the modes, to follow "approval is".
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
	// Chosen by the tenant; 0: not.
	Compact int `json:"compact,omitempty"` // percent of the window
	Depth   int `json:"depth,omitempty"`   // of sub-agents; negative: none
}

// An AgentAllow narrows who may talk to an agent: those who have one of the roles,
// and those who are one of the users.
type AgentAllow struct {
	Roles []UserRole    `json:"roles,omitempty"`
	Users []PrincipalID `json:"users,omitempty"`
}

// Check says what is wrong with the lists.
func (a AgentAllow) Check() error {
	switch {
	case len(a.Roles)+len(a.Users) == 0:
		return errors.New("allow names nobody who could talk to this agent")
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
	// What the run and everything below it may use; 0: as much as it takes.
	Tokens  int64 `json:"tokens,omitempty"`
	Seconds int64 `json:"seconds,omitempty"`
	Micros  int64 `json:"micros,omitempty"` // millionths of a US dollar
	// Compact: at how many percent of the window; 0: compactAt.
	Compact int `json:"compact,omitempty"`
	Depth   int `json:"depth,omitempty"` // of sub-agents; 0: maxDepth
	// Files: its runs say at their end what they did to files.
	Files bool `json:"files,omitempty"`
	// Titles: its model writes the title of the conversation.
	Titles bool `json:"titles,omitempty"`
	// Remote: the agent runs elsewhere. See remote.go.
	Remote bool `json:"remote,omitempty"`
	// Autonomy is what it may do unasked, within what the server allows.
	Autonomy Autonomy `json:"autonomy,omitzero"`
	// Trust is what it trusts of what it reads.
	Trust trust `json:"trust,omitempty"`
	// Hook is what the log knows of its webhook.
	Hook Hook `json:"hook,omitzero"`
}

// Elsewhere reports whether the agent runs elsewhere: another program decides what
// it says and does.
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

// ValidAgentName reports whether a name can be an agent's, in files and in URLs.
func ValidAgentName(name string) bool { return agentPattern.MatchString(name) }
