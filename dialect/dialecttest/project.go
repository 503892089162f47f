package dialecttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"parley"
	"parley/dialect"
)

func (d Dialect[V]) starts(log []parley.Event) []int {
	if d.Starts == nil {
		return []int{len(log)}
	}
	return d.Starts(log)
}

// show returns the frames of each event of a log, up to the end of the connection.
func (d Dialect[V]) show(view V, log []parley.Event) (shown [][]string, err error) {
	for _, e := range log {
		var frames []dialect.Frame
		view, frames = d.Project(view, e)
		texts, closed, err := render(frames)
		if err != nil {
			return nil, fmt.Errorf("seq %d, %s: %w", e.Seq, parley.TypeOf(e.Body), err)
		}
		if shown = append(shown, texts); closed {
			break
		}
	}
	return shown, nil
}

// pure projects every event a second time after all later ones: a view that
// shares memory with its successors gives other frames then.
func (d Dialect[V]) pure(view V, log []parley.Event, shown [][]string) error {
	views := make([]V, len(shown))
	for i := range shown {
		views[i] = view
		view, _ = d.Project(view, log[i])
	}
	for i, want := range shown {
		_, frames := d.Project(views[i], log[i])
		if got, _, _ := render(frames); !slices.Equal(got, want) {
			return fmt.Errorf("projecting is not pure: seq %d was shown as\n%q\nand with the same view later as\n%q",
				log[i].Seq, want, got)
		}
	}
	return nil
}

// render returns frames as they are written in a transcript.
func render(frames []dialect.Frame) (texts []string, closed bool, err error) {
	for _, f := range frames {
		switch {
		case closed:
			return nil, true, errors.New("a frame follows the end of the connection")
		case (f.Body == nil) == (f.Close == nil):
			return nil, false, errors.New("a frame has either a body or the end of the connection")
		case f.Close != nil:
			texts, closed = append(texts, fmt.Sprintf("close %d %s", f.Close.Code, f.Close.Reason)), true
		default:
			raw := dialect.Encode(f.Body)
			if raw[0] != '{' || !json.Valid(raw) {
				return nil, false, fmt.Errorf("%s is not a JSON object", raw)
			}
			texts = append(texts, string(raw))
		}
	}
	return texts, closed, nil
}

// consistent checks, in all views, that Project is pure. It also checks that a client that connects when the log has
// one of the lengths heads gets the same frames as other clients.
func (d Dialect[V]) consistent(log []parley.Event, heads ...int) error {
	for name, view := range d.Views {
		all, err := d.show(view, log)
		if err == nil {
			err = d.pure(view, log, all)
		}
		if err != nil {
			return err
		}
		checked := map[int]bool{}
		for _, head := range heads {
			if head >= len(all) {
				continue // no events follow, or the connection has ended
			}
			for _, start := range d.starts(log[:head]) {
				if checked[start] {
					continue
				}
				checked[start] = true
				if err := d.sameFrom(view, log, all, start); err != nil {
					return fmt.Errorf("view %q, who connects after seq %d: %w", name, int(log[0].Seq)+head-1, err)
				}
			}
		}
	}
	return nil
}

// everywhere returns every length that a log has had.
func everywhere(log []parley.Event) []int {
	heads := make([]int, len(log))
	for i := range heads {
		heads[i] = i
	}
	return heads
}

func (d Dialect[V]) sameFrom(view V, log []parley.Event, all [][]string, start int) error {
	late, err := d.show(view, log[start:])
	if err != nil {
		return err
	}
	for i, want := range all[start:] {
		if !slices.Equal(late[i], want) {
			return fmt.Errorf("seq %d is shown as\n%q\nand to others as\n%q", log[start+i].Seq, late[i], want)
		}
	}
	return nil
}

// complete checks that every event type is either shown or ignored, and not
// both.
func (d Dialect[V]) complete(logs [][]parley.Event) error {
	var p problems
	shown := map[string]bool{}
	for _, log := range logs {
		for _, view := range d.Views {
			frames, err := d.show(view, log)
			p.add(err)
			for i := range frames {
				if len(frames[i]) > 0 {
					shown[parley.TypeOf(log[i].Body)] = true
				}
			}
		}
	}
	types := parley.EventTypes()
	slices.Sort(types)
	for _, name := range types {
		reason, ignored := d.Ignored[name]
		switch {
		case !ignored && !shown[name]:
			p.add(fmt.Errorf("%s neither shows %s in any transcript nor says why it is ignored", d.Name, name))
		case ignored && shown[name]:
			p.add(fmt.Errorf("%s says that %s is ignored (%s) and shows it", d.Name, name, reason))
		case ignored && reason == "":
			p.add(fmt.Errorf("%s ignores %s for no reason", d.Name, name))
		}
	}
	for name := range d.Ignored {
		if !slices.Contains(types, name) {
			p.add(fmt.Errorf("%s ignores %s, which is no event", d.Name, name))
		}
	}
	return p.err()
}
