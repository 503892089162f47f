package engine

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"parley"
	"parley/port"
)

// Messages between nodes are sealed by a key that is derived from their shared
// one. A process that can only reach the bus or the database can neither read
// nor forge them.

// A sealer seals and opens messages between nodes.
type sealer struct{ cipher.AEAD }

func newSealer(key []byte) sealer {
	own := sha256.Sum256(append([]byte("parley: commands between nodes\n"), key...))
	block, err := aes.NewCipher(own[:])
	if err != nil {
		panic(err) // not with a key of this length
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // not with this cipher
	}
	return sealer{gcm}
}

// A messageID identifies a message: the command of a session, or the answer to it. A message that was sealed for
// another messageID cannot be opened.
type messageID struct {
	key
	command parley.CommandID
	answer  bool
}

func (id messageID) bytes() []byte {
	return fmt.Appendf(nil, "%s/%s/%s/%t", id.tenant, id.session, id.command, id.answer)
}

func (s sealer) seal(id messageID, message any) []byte {
	raw, err := json.Marshal(message)
	if err != nil {
		panic(fmt.Sprintf("%T cannot be encoded: %v", message, err)) // strings and numbers only
	}
	return s.Seal(nil, nil, raw, id.bytes())
}

func (s sealer) open(id messageID, sealed []byte, message any) error {
	raw, err := s.Open(nil, nil, sealed, id.bytes())
	if err == nil {
		err = json.Unmarshal(raw, message)
	}
	return err
}

// commandTypes are all types of commands, by name.
var commandTypes = map[string]reflect.Type{}

func init() {
	for _, do := range []parley.CommandBody{
		parley.AcceptTools{}, parley.AnswerQuestion{}, parley.CancelRun{}, parley.CancelTimer{},
		parley.ChangeSettings{}, parley.ChooseToolServers{}, parley.ClearMission{}, parley.CompactContext{},
		parley.DecideApproval{}, parley.DecidePlan{}, parley.DeleteAgent{}, parley.DeleteSession{},
		parley.ExplainApproval{}, parley.FireTimer{}, parley.ForkSession{}, parley.HaltSession{},
		parley.MakeAgent{}, parley.NoteAgents{}, parley.OpenSession{}, parley.PromptAgent{},
		parley.RenameSession{}, parley.ReopenSession{}, parley.ResolveToolCall{}, parley.ReturnToolResult{},
		parley.RevokeGrant{}, parley.SetMission{}, parley.SetOverride{}, parley.SetWebhook{},
		parley.StartAgent{}, parley.StopAgent{}, parley.SubmitInput{}, parley.UndoChanges{},
		parley.WithdrawInput{},
	} {
		commandTypes[reflect.TypeOf(do).Name()] = reflect.TypeOf(do)
	}
}

// A forwarded is a request on its way to another node.
type forwarded struct {
	Who  port.Principal     `json:"who"`
	By   parley.PrincipalID `json:"by"`
	At   time.Time          `json:"at"`
	Via  string             `json:"via,omitempty"`
	Type string             `json:"type,omitempty"`
	Do   json.RawMessage    `json:"do,omitempty"`
	Own  bool               `json:"own,omitempty"`
	Rest bool               `json:"rest,omitempty"`
}

func newForwarded(r *request) forwarded {
	c := r.command
	p := forwarded{Who: r.who, By: c.By, At: c.At, Via: c.Via, Own: r.internal, Rest: r.rest}
	if c.Do != nil {
		raw, err := json.Marshal(c.Do)
		if err != nil {
			panic(fmt.Sprintf("%T cannot be encoded: %v", c.Do, err)) // strings and numbers only
		}
		p.Type, p.Do = reflect.TypeOf(c.Do).Name(), raw
	}
	return p
}

// request returns the request that was passed on.
func (p forwarded) request(of messageID) (*request, error) {
	r := &request{who: p.Who, internal: p.Own, rest: p.Rest, command: parley.Command{ID: of.command, Tenant: of.tenant,
		Session: of.session, By: p.By, At: p.At, Via: p.Via}}
	if p.Type == "" {
		return r, nil
	}
	t, ok := commandTypes[p.Type]
	if !ok {
		return nil, fmt.Errorf("unknown command %q", p.Type)
	}
	do := reflect.New(t)
	if err := json.Unmarshal(p.Do, do.Interface()); err != nil {
		return nil, err
	}
	r.command.Do = do.Elem().Interface().(parley.CommandBody) // commandTypes has no others
	return r, nil
}

// An answer is the result of a passed request: a receipt, a refusal, or where
// and when to ask again.
type answer struct {
	Receipt   *port.Receipt `json:"receipt,omitempty"`
	Refused   *refused      `json:"refused,omitempty"`
	Elsewhere string        `json:"elsewhere,omitempty"` // the node that has the session
	Unfit     string        `json:"unfit,omitempty"`     // why this node cannot have the session
	Again     bool          `json:"again,omitempty"`     // the session was on its way from one node to another
}

// refused is a parley.Error on its way.
type refused struct {
	Code       parley.Code         `json:"code"`
	Message    string              `json:"message"`
	Hint       string              `json:"hint,omitempty"`
	RetryAfter time.Duration       `json:"retry_after,omitempty"`
	Vendor     *parley.VendorError `json:"vendor,omitempty"`
	Problem    string              `json:"problem,omitempty"`
}

func newCommandID() parley.CommandID { return parley.CommandID("node-" + rand.Text()) }
