//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
)

// A launch is one start of a command: what its supervisor is told and given.
type launch struct {
	told    spec
	command Command
	root    *os.File   // of the workspace
	folders []*os.File // further ones
	lock    *os.File   // of the covers; nil: none
}

// A supervisor is a running one, seen from the server.
type supervisor struct {
	cmd    *exec.Cmd
	output *os.File // of the command; its end is the end of everything that was started
	stderr *os.File // of the command, if it is apart; nil: it is in output
	built  chan struct{}
	ended  chan struct{} // closed after the last message
	answer chan message  // to the last order that is answered
	forced atomic.Bool   // it was ended because it could not be paused

	mu      sync.Mutex // guards the following; held for writes of a few bytes
	control *os.File   // nil: closed
	encoder *gob.Encoder

	ending outcome // after ended
	broken error   // likewise: there was no last word
}

// startSupervisor starts a supervisor and tells it what to run. Closing the
// control is how it is told to end everything: that happens as well when this
// process dies.
func startSupervisor(l launch) (*supervisor, error) {
	var opened []*os.File
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err == nil {
			opened = append(opened, r, w)
		}
		return r, w
	}
	output, outputW := pipe()
	control, controlW := pipe()
	last, lastW := pipe()
	var stderr *os.File
	stderrW, pipes := outputW, 3
	if l.command.Stderr != nil {
		stderr, stderrW = pipe()
		pipes++
	}
	if len(opened) < 2*pipes {
		closeAll(opened)
		return nil, errors.New("no pipe: too many open files")
	}
	cmd := exec.Command("/proc/self/exe", helperName, "supervise")
	cmd.Env = l.told.Env
	cmd.Stdout, cmd.Stderr = outputW, stderrW
	if l.command.Input != nil {
		cmd.Stdin, cmd.Stdout = l.command.Input, l.command.Reply
	}
	cmd.ExtraFiles = append([]*os.File{control, lastW, l.root}, l.folders...)
	if l.lock != nil {
		cmd.ExtraFiles, l.told.Lock = append(cmd.ExtraFiles, l.lock), folderFD+len(l.folders)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal, and no signals of ours
	if err := cmd.Start(); err != nil {
		closeAll(opened)
		return nil, fmt.Errorf("the supervisor did not start: %w", err)
	}
	closeAll([]*os.File{outputW, control, lastW})
	if stderr != nil {
		stderrW.Close()
	}
	s := &supervisor{cmd: cmd, output: output, stderr: stderr, control: controlW, encoder: gob.NewEncoder(controlW),
		built: make(chan struct{}), ended: make(chan struct{}), answer: make(chan message, 1)}
	go s.listen(last) // ends when the supervisor does; wait waits for it
	if err := s.encoder.Encode(l.told); err != nil {
		s.close()
	}
	return s, nil
}

func (s *supervisor) listen(last *os.File) {
	defer close(s.ended)
	defer last.Close()
	in := gob.NewDecoder(last)
	for {
		var m message
		switch s.broken = in.Decode(&m); {
		case s.broken != nil:
			return
		case m.Built:
			close(s.built)
		case m.Done != 0 || m.Failed != 0:
			select {
			case <-s.answer: // one that came too late for its question
			default:
			}
			s.answer <- m
		case m.Ended != nil:
			s.ending = *m.Ended
			return
		}
	}
}

// order tells a supervisor something, if it still listens.
func (s *supervisor) order(o order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.control != nil {
		_ = s.encoder.Encode(o) // one that is gone has ended
	}
}

func (s *supervisor) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.control != nil {
		s.control.Close()
		s.control = nil
	}
}

// wait passes on what the command writes and returns when everything is gone.
func (s *supervisor) wait(ctx context.Context, c Command) (Ended, error) {
	stop := context.AfterFunc(ctx, s.close)
	defer stop()
	flooded := false
	switch {
	case s.stderr != nil:
		flooded = s.copyBoth(c)
		s.stderr.Close()
	case c.Input != nil:
		io.Copy(c.Output, s.output)
	default:
		if n, _ := io.CopyN(c.Output, s.output, MaxOutput); n == MaxOutput {
			flooded = true
			s.close()
		}
	}
	io.Copy(io.Discard, s.output) // also if the caller does not take it: nothing is to wait for that
	<-s.ended
	s.close()
	s.output.Close()
	err := s.cmd.Wait()
	switch {
	case s.broken != nil && ctx.Err() != nil:
		return Ended{Killed: true}, nil // before it could start
	case s.broken != nil:
		return Ended{}, fmt.Errorf("its supervisor died, and what became of it is not known: %w",
			errors.Join(err, s.broken))
	case s.ending.Error != "" && !s.ending.Killed:
		return Ended{}, errors.New(s.ending.Error)
	}
	s.ending.Flood, s.ending.Unpausable = flooded, s.forced.Load()
	return s.ending.Ended, nil
}

// A chunk is what was read of one of two streams. Its reader goes on when it is
// taken.
type chunk struct {
	text  []byte
	to    io.Writer
	taken chan struct{}
}

// copyBoth passes on what the command writes to stdout and stderr, as it is read,
// until both have ended. It reports whether that was too much.
func (s *supervisor) copyBoth(c Command) (flooded bool) {
	chunks := make(chan chunk)
	var readers sync.WaitGroup
	read := func(from *os.File, to io.Writer) {
		buffer, taken := make([]byte, 32<<10), make(chan struct{})
		for {
			n, err := from.Read(buffer)
			if n > 0 {
				chunks <- chunk{buffer[:n], to, taken}
				<-taken
			}
			if err != nil {
				return
			}
		}
	}
	readers.Go(func() { read(s.output, c.Output) })
	readers.Go(func() { read(s.stderr, c.Stderr) })
	go func() { // ends with the readers, and the loop below with it
		readers.Wait()
		close(chunks)
	}()
	left, takes := MaxOutput, true
	for part := range chunks {
		if text := part.text[:min(left, len(part.text))]; takes && len(text) > 0 {
			_, err := part.to.Write(text)
			takes = err == nil
			if left -= len(text); left == 0 {
				flooded = true
				s.close()
			}
		}
		part.taken <- struct{}{}
	}
	return flooded
}

// end ends a command that cannot be paused.
func (s *supervisor) end() {
	s.forced.Store(true)
	s.close()
}
