package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Model is a mock of an OpenAI-compatible server. The last message of a request
// contains the number of an answer, and the model streams that answer. It parses no
// JSON and writes mostly prepared bytes, to leave the processor to the server under
// test.
type Model struct {
	address string
	listen  net.Listener
	pace    *pacer
	lag     *histogram // how late tokens were written
	wg      sync.WaitGroup
	ctx     context.Context
	stop    context.CancelFunc

	mu      sync.Mutex // guards the fields below
	answers map[int]*answer
	conns   map[net.Conn]bool
	last    int
}

// An answer describes how the model answers one message.
type answer struct {
	tag    int
	tokens int
	size   int           // bytes of a token, at least the length of its stamp
	gap    time.Duration // time between tokens; 0: no pause
	window chan struct{} // each token takes one element; nil: no limit
	tool   string        // call this tool instead, with these arguments
	args   string
}

// prompt returns the message that requests an answer.
func (a *answer) prompt() string { return promptMark + strconv.Itoa(a.tag) + "#" }

const promptMark = "bench#"

func newModel(address string, pace *pacer) (*Model, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	m := &Model{address: l.Addr().String(), listen: l, pace: pace, lag: &histogram{}, ctx: ctx, stop: stop,
		answers: map[int]*answer{}, conns: map[net.Conn]bool{}}
	m.wg.Go(m.accept)
	return m, nil
}

// URL returns the base URL for clients of the OpenAI API.
func (m *Model) URL() string { return "http://" + m.address + "/v1" }

func (m *Model) close() {
	m.stop()
	_ = m.listen.Close() // accept reports the error
	m.mu.Lock()
	for c := range m.conns {
		_ = c.Close() // the server under test may have closed it
	}
	m.mu.Unlock()
	m.wg.Wait()
}

// add registers an answer and gives it a number.
func (m *Model) add(a answer) *answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	a.tag = m.last
	m.answers[a.tag] = &a
	return &a
}

// forget removes the answers and the lag of the last scenario.
func (m *Model) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.answers)
	m.lag = &histogram{}
}

func (m *Model) lateness() *histogram {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lag
}

func (m *Model) accept() {
	for {
		c, err := m.listen.Accept()
		if err != nil {
			return
		}
		m.mu.Lock()
		m.conns[c] = true
		m.mu.Unlock()
		m.wg.Go(func() {
			m.serve(c)
			_ = c.Close() // everything is written
			m.mu.Lock()
			delete(m.conns, c)
			m.mu.Unlock()
		})
	}
}

// serve answers the requests of one connection.
func (m *Model) serve(c net.Conn) {
	r := bufio.NewReaderSize(c, 8<<10)
	var body []byte
	for {
		path, length, err := readHead(r)
		if err != nil {
			return
		}
		if cap(body) < length || cap(body) > 64<<10 && length < 8<<10 {
			body = make([]byte, length)
		}
		body = body[:length]
		if _, err := io.ReadFull(r, body); err != nil {
			return
		}
		switch {
		case strings.HasSuffix(path, "/models"):
			err = writePlain(c, 200, `{"object":"list","data":[{"id":"bench","object":"model","owned_by":"bench"}]}`)
		default:
			err = m.answer(c, body)
		}
		if err != nil {
			return
		}
	}
}

// readHead reads a request up to its body. The request must have a Content-Length.
func readHead(r *bufio.Reader) (path string, length int, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return "", 0, err
	}
	if parts := bytes.Fields(line); len(parts) == 3 {
		path = string(parts[1])
	}
	for {
		line, err = r.ReadSlice('\n')
		if err != nil {
			return "", 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return path, length, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if bytes.EqualFold(name, []byte("content-length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return "", 0, err
			}
		}
	}
}

func writePlain(w io.Writer, status int, body string) error {
	_, err := fmt.Fprintf(w, "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status,
		len(body), body)
	return err
}

// find returns the answer that the last message of a request asks for. If the
// request ends with a tool's result, the tool is not called again.
func (m *Model) find(body []byte) *answer {
	at := bytes.LastIndex(body, []byte(promptMark))
	if at < 0 {
		return nil
	}
	digits, _, _ := bytes.Cut(body[at+len(promptMark):min(at+len(promptMark)+12, len(body))], []byte("#"))
	tag, err := strconv.Atoi(string(digits))
	if err != nil {
		return nil
	}
	m.mu.Lock()
	a := m.answers[tag]
	m.mu.Unlock()
	if a != nil && a.tool != "" && bytes.Contains(body[at:], []byte(`"role":"tool"`)) {
		return &answer{tag: tag, tokens: a.tokens, size: a.size}
	}
	return a
}

const (
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	chunkFrom  = `data: {"id":"b","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,` +
		`"delta":{"role":"assistant","content":"`
	chunkTo = `"},"finish_reason":null}]}` + "\n\n"
	ending  = `data: {"id":"b","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,` +
		`"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	usage = `data: {"id":"b","object":"chat.completion.chunk","created":1,"model":"bench","choices":[],` +
		`"usage":{"prompt_tokens":10,"completion_tokens":%d,"total_tokens":%d}}` + "\n\n"
	calling = `data: {"id":"b","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,` +
		`"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_%d","type":"function","function":` +
		`{"name":%q,"arguments":%q}}]},"finish_reason":null}]}` + "\n\n" +
		`data: {"id":"b","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,` +
		`"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n"
)

func (m *Model) answer(c net.Conn, body []byte) error {
	a := m.find(body)
	if a == nil {
		return writePlain(c, 400, `{"error":{"message":"This mock model answers only messages of parley bench."}}`)
	}
	if !bytes.Contains(body, []byte(`"stream":true`)) { // for a title or a summary
		return writePlain(c, 200,
			`{"id":"b","object":"chat.completion","created":1,"model":"bench","choices":[{"index":0,`+
				`"message":{"role":"assistant","content":"bench"},"finish_reason":"stop"}],`+
				`"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	}
	out := []byte(streamHead)
	if a.tool != "" {
		out = appendChunk(out, fmt.Sprintf(calling, a.tag, a.tool, a.args))
	} else if err := m.stream(c, a, &out); err != nil {
		return err
	}
	out = appendChunk(out, ending+fmt.Sprintf(usage, a.tokens, a.tokens+10)+"data: [DONE]\n\n")
	out = append(out, "0\r\n\r\n"...)
	_, err := c.Write(out)
	return err
}

// stream writes the tokens one by one, as models do.
func (m *Model) stream(c net.Conn, a *answer, out *[]byte) error {
	lag, began := m.lateness(), clock()
	var token []byte
	for i := range a.tokens {
		stamp := clock()
		switch {
		case a.window != nil:
			if len(a.window) == 0 && len(*out) > 0 {
				if _, err := c.Write(*out); err != nil {
					return err
				}
				*out = (*out)[:0]
			}
			select {
			case <-a.window:
			case <-m.ctx.Done():
				return m.ctx.Err()
			}
			stamp = clock()
		case a.gap > 0:
			stamp = began + int64(i)*int64(a.gap)
			if !m.pace.until(m.ctx, stamp) {
				return context.Canceled
			}
			lag.record(clock() - stamp)
		}
		token = appendToken(token[:0], a.tag, i, stamp, a.size)
		*out = append(*out, strconv.FormatInt(int64(len(chunkFrom)+len(token)+len(chunkTo)), 16)...)
		*out = append(*out, "\r\n"+chunkFrom...)
		*out = append(*out, token...)
		*out = append(*out, chunkTo+"\r\n"...)
		if _, err := c.Write(*out); err != nil {
			return err
		}
		*out = (*out)[:0]
	}
	return nil
}

func appendChunk(b []byte, data string) []byte {
	b = append(b, strconv.FormatInt(int64(len(data)), 16)...)
	b = append(append(b, "\r\n"...), data...)
	return append(b, "\r\n"...)
}

// appendToken appends a token with everything that a follower checks: run,
// index and the time at which the token was due. Padding and a space follow.
func appendToken(b []byte, tag, index int, stamp int64, size int) []byte {
	from := len(b)
	b = strconv.AppendInt(b, int64(tag), 10)
	b = strconv.AppendInt(append(b, '.'), int64(index), 10)
	b = strconv.AppendInt(append(b, '.'), stamp, 10)
	b = append(b, '.')
	b = append(b, padding[:min(max(size-1-(len(b)-from), 4), len(padding))]...)
	return append(b, ' ')
}

var padding = strings.Repeat("x", 64<<10)
