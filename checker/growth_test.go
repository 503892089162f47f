package checker_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/checker"
)

// conversation returns a log with this number of runs, each with an answer in
// this number of chunks.
func conversation(runs, chunks int) (log []parley.Event) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run := parley.RunID(0)
	add := func(b parley.EventBody) parley.Seq {
		seq := parley.Seq(len(log) + 1)
		if _, starts := b.(parley.RunStarted); starts {
			run = parley.RunID(seq)
		}
		log = append(log, parley.Event{Session: "s", Root: "s", Seq: seq, At: at.Add(time.Duration(seq)), Run: run,
			Body: b})
		return seq
	}
	add(parley.SessionOpened{Owner: "ann"})
	const chunk = "a few words "
	for range runs {
		input := parley.InputID(add(parley.InputReceived{Content: "x"}))
		add(parley.RunStarted{Input: input})
		add(parley.InputAdopted{Input: input})
		turn := parley.TurnID(add(parley.TurnStarted{Number: 1}))
		output := parley.OutputID(add(parley.OutputStarted{Turn: turn}))
		for i := range chunks {
			add(parley.OutputAppended{Output: output, Offset: i * len(chunk), Text: chunk})
		}
		add(parley.OutputFinished{Output: output, First: parley.Seq(output) + 1, Text: strings.Repeat(chunk, chunks)})
		add(parley.TurnFinished{Turn: turn, Stop: parley.StopEnd})
		add(parley.RunFinished{Outcome: parley.Completed})
		run = 0
	}
	return log
}

// TestCheckingTakesLinearMemory checks that four times the chunks of one
// answer, or four times the runs, take about four times the memory.
func TestCheckingTakesLinearMemory(t *testing.T) {
	allocated := func(log []parley.Event) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		wrong := checker.Check(log)
		runtime.ReadMemStats(&after)
		if len(wrong) > 0 {
			t.Fatal(wrong[0])
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := allocated(conversation(1, 5_000)), allocated(conversation(1, 20_000)); many > 6*few {
		t.Errorf("5,000 chunks took %d bytes, 20,000 took %d", few, many)
	}
	if few, many := allocated(conversation(500, 1)), allocated(conversation(2_000, 1)); many > 6*few {
		t.Errorf("500 runs took %d bytes, 2,000 took %d", few, many)
	}
}

// BenchmarkCheck measures the part of an import that checks the whole log.
func BenchmarkCheck(b *testing.B) {
	for _, size := range []struct{ runs, chunks int }{{1, 5_000}, {1, 20_000}, {1_000, 10}, {4_000, 10}} {
		b.Run(fmt.Sprintf("runs=%d/chunks=%d", size.runs, size.chunks), func(b *testing.B) {
			log := conversation(size.runs, size.chunks)
			b.ReportAllocs()
			for b.Loop() {
				if wrong := checker.Check(log); len(wrong) > 0 {
					b.Fatal(wrong[0])
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(log)), "ns/event")
		})
	}
}
