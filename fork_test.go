package parley_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley"
)

const forkSource = parley.SessionID("7d1e8b0c-2f61-4f0e-9a35-6f1f0a9f5f10")

// TestAForkHasTheConversation checks that a fork has the messages of its source. Calls of the source cannot be mistaken
// for calls of the fork, even in a fork of a fork.
func TestAForkHasTheConversation(t *testing.T) {
	said := []parley.Message{
		{Role: parley.RoleUser, Text: "Look.", Images: []parley.Image{{Type: "image/png", Data: []byte{1}}}, Seq: 3,
			Input: 2},
		{Role: parley.RoleAssistant, Text: "I look.", Thinking: "Hm.", Memo: &parley.Memo{Provider: "x"}, Seq: 5,
			Calls: []parley.MessageCall{{ID: 6, Provider: "toolu_1", Name: "list_files", Arguments: "{}"}}},
		{Role: parley.RoleTool, Call: 6, Text: "notes.txt", Seq: 5},
	}
	fork := func(messages []parley.Message) []parley.Message {
		return parley.Conversation([]parley.Event{{Seq: 1, Body: parley.SessionOpened{Owner: "ann"}},
			{Seq: 2, Body: parley.SessionForked{Source: forkSource, At: 9, Messages: parley.ForkOf(messages)}}})
	}
	want := func(call parley.CallID) []parley.Message {
		return []parley.Message{
			{Role: parley.RoleUser, Text: "Look.", Images: said[0].Images, Seq: 2},
			{Role: parley.RoleAssistant, Text: "I look.", Seq: 2,
				Calls: []parley.MessageCall{{ID: call, Name: "list_files", Arguments: "{}"}}},
			{Role: parley.RoleTool, Call: call, Text: "notes.txt", Seq: 2},
		}
	}
	first := fork(said)
	if diff := cmp.Diff(want(-6), first); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want(-6-1<<40), fork(first)); diff != "" {
		t.Error(diff)
	}
}

// TestAForkIsANewSession checks that a fork is a new session of the principal that asks for it, and remembers untrusted
// sources.
func TestAForkIsANewSession(t *testing.T) {
	state := parley.NewState("acme", "550e8400-e29b-41d4-a716-446655440000")
	do := parley.ForkSession{Source: forkSource, At: 4, Title: "Again", Agent: "coder", Project: "/p",
		Messages: []parley.ForkedMessage{{Role: parley.RoleUser, Text: "Hi."}},
		Sources:  []parley.Source{parley.SourceNetwork}}
	command := func(do parley.ForkSession) parley.Command {
		return parley.Command{Tenant: "acme", Session: state.ID, By: "bob", Do: do}
	}
	events, err := parley.Decide(state, command(do))
	if err != nil || len(events) != 2 {
		t.Fatalf("%v, %v", events, err)
	}
	for _, e := range events {
		state = parley.Fold(state, e)
	}
	if state.Owner != "bob" || state.Agent != "coder" || state.Title != "Again" || state.Project != "/p" ||
		len(state.Sources) != 1 || state.Sources[0] != parley.SourceNetwork {
		t.Errorf("the fork is %+v", state)
	}
	if _, err := parley.Decide(state, command(do)); parley.CodeOf(err) != parley.CodeConflict {
		t.Errorf("a second fork under the same id: %v", err)
	}
	do.Messages = []parley.ForkedMessage{{Role: parley.RoleUser, Text: strings.Repeat("x", 8<<20)}}
	fresh := parley.NewState("acme", state.ID)
	if _, err := parley.Decide(fresh, command(do)); parley.CodeOf(err) != parley.CodeTooLarge {
		t.Errorf("a fork that is too large: %v", err)
	}
	if err := do.Rules().Check(); parley.CodeOf(err) != parley.CodeInvalid {
		t.Errorf("a conversation that the client made up: %v", err)
	}
}
