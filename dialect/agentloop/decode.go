package agentloop

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"parley"
	"parley/dialect"
)

// Decoded is a decoded message of a client: a command, a query or a refusal.
type Decoded struct {
	Command parley.Command
	Query   string   // type of a message that asks for information
	Refusal *failure // why the message is refused
	Named   bool     // an approval_response that names its request
	id      parley.CommandID
}

// Repeats reports whether the message repeats the answer with this id to an
// approval request, and no other approval is open.
func (d Decoded) Repeats(id parley.CommandID) bool {
	return id != "" && d.id == id && d.Refusal != nil && d.Refusal.Message == noApproval
}

// An Asked is the approval that a connection was last shown.
type Asked struct {
	Session  parley.SessionID // empty: the session of the connection
	Card     parley.CardID    // zero: no approval is open
	Patch    *patchCommand    // the patch that was shown, if any
	Requests []string         // ids of the frames that showed it
}

// Error messages, in the words of the document and the original server.
const (
	badFormat       = "Invalid message format"
	inputFailed     = "Failed to process user input"
	approvalFailed  = "Failed to process approval response"
	noApproval      = "No pending approval request"
	compactFailed   = "Context compaction failed"
	nothingSaid     = "Cannot compact empty transcript"
	questionFailed  = "Failed to process question response"
	unresolved      = "Failed to process tool call resolution"
	cancelFailed    = "Failed to cancel"
	getContextInfo  = "get_context_info"
	getSession      = "get_session"
	maxTypeInErrors = 80
)

// maxOther is the maximum size in bytes of a message that is not an input.
const maxOther = 1 << 20

// Decode decodes a message on a connection of a session. asked is the approval
// that the connection was last shown.
func Decode(session parley.SessionID, asked Asked, data []byte) Decoded {
	m, err := envelope(data)
	if err != nil {
		return refuse(badFormat, err)
	}
	if len(data) > maxOther && m.kind != "user_input" {
		return refuse(badFormat, parley.Errorf(parley.CodeTooLarge,
			"Only a user_input may be longer than %d bytes.", maxOther))
	}
	d := m.decode(asked)
	if id, err := uuid.Parse(m.id); err == nil && len(m.id) == len(uuid.Nil.String()) {
		d.id = parley.CommandID(id.String())
	}
	if d.Command.Do != nil {
		d.Command.Session, d.Command.ID = cmp.Or(d.Command.Session, session), d.id
	}
	return d
}

func refuse(message string, err error) Decoded {
	code, reason := parley.CodeInvalid, err.Error()
	if e, ok := errors.AsType[*parley.Error](err); ok {
		code, reason = e.Code, strings.TrimSuffix(e.Message, ".")
	}
	f := notProcessed(message, code, reason)
	return Decoded{Refusal: &f}
}

// received is a message with its payload, if that is an object.
type received struct {
	id, kind string
	payload  dialect.Object
	err      error // error if the payload is not an object
}

func envelope(data []byte) (m received, err error) {
	o, err := dialect.ParseObject(data)
	if err != nil {
		return m, err
	}
	for _, f := range []struct {
		key string
		to  *string
	}{{"id", &m.id}, {"type", &m.kind}} {
		if !o.Has(f.key) {
			return m, fmt.Errorf("%s is missing", f.key)
		}
		if *f.to, err = o.String(f.key); err != nil {
			return m, err
		}
	}
	m.payload = dialect.Object{}
	if o.Has("payload") {
		if m.payload, m.err = dialect.ParseObject(o["payload"]); m.err != nil {
			m.err = fmt.Errorf("payload: %w", m.err)
		}
	}
	return m, nil
}

func (m received) decode(asked Asked) Decoded {
	read := map[string]func(received, Asked) (Decoded, error){
		"user_input":           received.userInput,
		"approval_response":    received.approvalResponse,
		"question_response":    received.questionResponse,
		"tool_call_resolution": received.resolution,
	}[m.kind]
	title := map[string]string{"user_input": inputFailed, "approval_response": approvalFailed,
		"question_response": questionFailed, "tool_call_resolution": unresolved}[m.kind]
	switch {
	case read != nil && m.err != nil:
		return refuse(title, m.err)
	case read != nil:
		d, err := read(m, asked)
		if err != nil {
			return refuse(title, err)
		}
		return d
	}
	// These messages ignore their payload.
	switch m.kind {
	case getContextInfo, getSession:
		return Decoded{Query: m.kind}
	case "manual_compact":
		return Decoded{Command: parley.Command{Do: parley.CompactContext{}}}
	case "cancel":
		return Decoded{Command: parley.Command{Do: parley.CancelRun{}}}
	}
	return Decoded{Refusal: &failure{fmt.Sprintf("Unknown message type: %.*s", maxTypeInErrors, m.kind), nil}}
}

func (m received) userInput(Asked) (d Decoded, err error) {
	var items []json.RawMessage
	if !m.payload.Has("input") {
		return d, fmt.Errorf("input is missing")
	}
	if err := m.payload.Into("input", &items, "a list of items"); err != nil {
		return d, err
	}
	var said, urls []string
	for i, raw := range items {
		words, images, err := inputItem(raw)
		if err != nil {
			return d, fmt.Errorf("input %d: %w", i, err)
		}
		said, urls = append(said, words), append(urls, images...)
	}
	images, err := dialect.Images(urls)
	if err != nil {
		return d, err
	}
	content := strings.Join(said, "\n\n")
	switch blank := parley.IsBlank(parley.CleanText(content)); {
	case blank && len(images) > 0:
		return d, fmt.Errorf("the message has an image and no text; say in an input_text what to do with it")
	case blank:
		return d, fmt.Errorf("the message is empty")
	case len(content) > parley.MaxContent:
		return d, parley.Errorf(parley.CodeTooLarge, "The message is longer than %d bytes.", parley.MaxContent)
	}
	d.Command.Do = parley.SubmitInput{Content: content, Images: images, Busy: parley.Queue, Open: true,
		Transient: true}
	return d, nil
}

// inputItem returns the text of a message and the data URLs of its images. Its role must be user: the log has the
// messages of assistants and tools, and a client must not invent them.
func inputItem(raw json.RawMessage) (words string, images []string, err error) {
	o, err := dialect.ParseObject(raw)
	if err != nil {
		return "", nil, err
	}
	kind, err := o.String("type")
	if err != nil {
		return "", nil, err
	}
	role, err := o.String("role")
	switch {
	case err != nil:
		return "", nil, err
	case kind != "message" && kind != "":
		return "", nil, fmt.Errorf("type must be message, not %.40q", kind)
	case role != "user":
		return "", nil, fmt.Errorf("role must be user, not %.40q", role)
	}
	if json.Unmarshal(o["content"], &words) == nil {
		return words, nil, nil
	}
	var parts []json.RawMessage
	if err := o.Into("content", &parts, "a string or a list of parts"); err != nil {
		return "", nil, err
	}
	for _, part := range parts {
		more, image, err := inputPart(part)
		if err != nil {
			return "", nil, err
		}
		if words += more; image != "" {
			images = append(images, image)
		}
	}
	return words, images, nil
}

// inputPart returns a text or the data URL of an image.
func inputPart(raw json.RawMessage) (words, image string, err error) {
	if json.Unmarshal(raw, &words) == nil {
		return words, "", nil
	}
	o, err := dialect.ParseObject(raw)
	if err != nil {
		return "", "", err
	}
	kind, err := o.String("type")
	switch {
	case err != nil:
		return "", "", err
	case kind == "input_image":
		image, err = o.String("image_url")
		if err == nil && !strings.HasPrefix(image, "data:") {
			err = fmt.Errorf("image_url must be a data URL; the server fetches no addresses and no files")
		}
		return "", image, err
	case !slices.Contains([]string{"input_text", "output_text", "text"}, kind):
		return "", "", fmt.Errorf("content must be input_text or input_image, not %.40q", kind)
	}
	words, err = o.String("text")
	return words, "", err
}

// reviews are the answers to an approval request, including the spellings of
// the original server's manual.
var reviews = map[string]parley.Decision{
	"yes": parley.AllowOnce, "YES": parley.AllowOnce,
	"always": parley.AllowAlways, "ALWAYS": parley.AllowAlways,
	"no-continue": parley.Deny, "NO_CONTINUE": parley.Deny,
	"no-exit": parley.DenyAndStop, "NO_EXIT": parley.DenyAndStop, "NO": parley.DenyAndStop,
	"explain": explain, "EXPLAIN": explain,
}

// explain is a review that decides nothing.
const explain = parley.Decision("explain")

func (m received) approvalResponse(asked Asked) (d Decoded, err error) {
	review, err := m.payload.String("review")
	if err != nil {
		return d, err
	}
	decision, ok := reviews[review]
	if !ok {
		return d, fmt.Errorf("review must be yes, no-exit, no-continue, always or explain, not %.40q", review)
	}
	deny, err := m.payload.String("customDenyMessage")
	if err != nil {
		return d, err
	}
	why, err := m.payload.String("explanation")
	if err != nil {
		return d, err
	}
	scope, err := m.payload.String("scope")
	if err != nil {
		return d, err
	}
	request, err := m.payload.String("requestId")
	if err != nil {
		return d, err
	}
	if asked.Card == 0 || request != "" && !slices.Contains(asked.Requests, request) {
		return Decoded{Refusal: &failure{noApproval, nil}}, nil
	}
	if err := m.samePatch(asked.Patch); err != nil {
		return d, err
	}
	d.Named, d.Command.Session = request != "", asked.Session
	switch decision {
	case explain:
		d.Command.Do = parley.ExplainApproval{Card: asked.Card}
	case parley.AllowOnce, parley.AllowAlways:
		d.Command.Do = parley.DecideApproval{Card: asked.Card, Decision: decision, Scope: parley.GrantScope(scope),
			Note: why}
	default:
		note := strings.TrimSpace(deny + "\n" + why)
		d.Command.Do = parley.DecideApproval{Card: asked.Card, Decision: decision, Scope: parley.GrantScope(scope),
			Note: note}
	}
	return d, nil
}

// samePatch refuses a patch other than the one shown: an approval covers only
// that. For another patch, the client must ask the agent.
func (m received) samePatch(shown *patchCommand) error {
	if !m.payload.Has("applyPatch") {
		return nil
	}
	o, err := dialect.ParseObject(m.payload["applyPatch"])
	if err != nil {
		return fmt.Errorf("applyPatch: %w", err)
	}
	patch, err := o.String("patch")
	if err == nil && (shown == nil || patch != shown.Patch) {
		err = fmt.Errorf("applyPatch is not what was asked about; nothing was decided")
	}
	return err
}

func (m received) questionResponse(Asked) (Decoded, error) {
	return m.answer("questionId", dialect.AnswerQuestion)
}

func (m received) resolution(Asked) (Decoded, error) {
	return m.answer("callId", dialect.ResolveCall)
}

// answer reads an answer to a card of the session or of a session below it.
func (m received) answer(key string, read dialect.ReadAnswer) (d Decoded, err error) {
	d.Command, err = dialect.Answer(m.payload, key, key+" does not name anything of this session", read)
	return d, err
}
