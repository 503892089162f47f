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

// A launch holds the arguments and files for one start of a command.
type launch struct {
	told    spec
	command Command
	root    *os.File   // the workspace
	folders []*os.File // the additional folders
	lock    *os.File   // the lock of the covers; nil: none
}

// A supervisor is the server's handle of a running supervisor process.
type supervisor struct {
	cmd    *exec.Cmd
	output *os.File // of the command; ends when every process that was started has ended
	stderr *os.File // of the command, if separate; nil: it is in output
	built  chan struct{}
	ended  chan struct{} // closed after the last message
	answer chan message  // the answer to the last order that is answered
	forced atomic.Bool   // the command was ended because it could not be paused

	mu      sync.Mutex // guards the following; held only while a few bytes are written
	control *os.File   // nil: closed
	encoder *gob.Encoder

	ending outcome // valid after ended is closed
	broken error   // likewise: why there was no last message
}

// startSupervisor starts a supervisor and sends it the command. Closing control
// tells the supervisor to end all processes. The kernel also closes it if this
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
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal, and no signals meant for this server
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
	go s.listen(last) // ends when the supervisor ends; wait waits for it
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
			case <-s.answer: // a late answer to an earlier order
			default:
			}
			s.answer <- m
		case m.Ended != nil:
			s.ending = *m.Ended
			return
		}
	}
}

// order sends an order to the supervisor, unless control is closed.
func (s *supervisor) order(o order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.control != nil {
		_ = s.encoder.Encode(o) // an error means that the supervisor has ended
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

// wait copies the command's output and returns when all its processes are gone.
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
	io.Copy(io.Discard, s.output) // drain what the caller does not take, so that no process blocks on it
	<-s.ended
	s.close()
	s.output.Close()
	err := s.cmd.Wait()
	switch {
	case s.broken != nil && ctx.Err() != nil:
		return Ended{Killed: true}, nil // the command had not started
	case s.broken != nil:
		return Ended{}, fmt.Errorf("its supervisor died, and what became of it is not known: %w",
			errors.Join(err, s.broken))
	case s.ending.Error != "" && !s.ending.Killed:
		return Ended{}, errors.New(s.ending.Error)
	}
	s.ending.Flood, s.ending.Unpausable = flooded, s.forced.Load()
	return s.ending.Ended, nil
}

// A chunk is a part of one of two streams. Its reader continues after the
// write.
type chunk struct {
	text  []byte
	to    io.Writer
	taken chan struct{}
}

// copyBoth copies the command's stdout and stderr, as they are read, until both
// have ended. It reports whether they exceeded the limit.
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
	go func() { // ends with the readers and ends the loop below
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
