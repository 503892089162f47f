import type { LogEvent } from '../wire/log.generated'

// Comparison of two runs. Pure.

// A Step is one action of a run, in few words. Two steps are the same if their words are.
export interface Step {
  seq: number
  name: string
  tool?: boolean // the name is that of a tool
  detail: string
}

// stepsOf lists the steps of a run: its input, its tool calls, and its texts.
export function stepsOf(log: LogEvent[], run: number): Step[] {
  const steps: Step[] = []
  const inputs = new Map<number, string>()
  for (const event of log) {
    switch (event.type) {
      case 'InputReceived':
        inputs.set(event.seq, event.body.content)
        break
      case 'InputAdopted':
        if (event.run === run)
          steps.push({ seq: event.seq, name: 'Message', detail: inputs.get(event.body.input) ?? '' })
        break
      case 'ToolCallRequested':
        if (event.run === run)
          steps.push({ seq: event.seq, name: event.body.name, tool: true, detail: event.body.arguments })
        break
      case 'OutputFinished':
        if (event.run === run && event.body.kind === 'text')
          steps.push({ seq: event.seq, name: 'Answer', detail: event.body.text })
        break
    }
  }
  return steps
}

export interface Pair {
  left?: Step
  right?: Step
  same: boolean // they are identical
}

// align puts the steps of two runs side by side: the longest common sequence of names shares its lines.
export function align(left: Step[], right: Step[]): Pair[] {
  const rows = left.length + 1
  const columns = right.length + 1
  const longest = Array.from({ length: rows }, () => new Array<number>(columns).fill(0))
  for (let i = left.length - 1; i >= 0; i--)
    for (let j = right.length - 1; j >= 0; j--)
      longest[i]![j] =
        left[i]!.name === right[j]!.name
          ? longest[i + 1]![j + 1]! + 1
          : Math.max(longest[i + 1]![j]!, longest[i]![j + 1]!)
  const pairs: Pair[] = []
  let i = 0
  let j = 0
  while (i < left.length || j < right.length) {
    const a = left[i]
    const b = right[j]
    if (a !== undefined && b !== undefined && a.name === b.name) {
      pairs.push({ left: a, right: b, same: a.detail === b.detail })
      i++
      j++
    } else if (b === undefined || (a !== undefined && longest[i + 1]![j]! >= longest[i]![j + 1]!)) {
      pairs.push({ left: a, same: false })
      i++
    } else {
      pairs.push({ right: b, same: false })
      j++
    }
  }
  return pairs
}
