import type { LogEvent } from '../wire/log.generated'
import type { Usage } from '../wire/native.generated'

// A session as it was at an event: its log folded up to that event. Pure.

export interface PastEntry {
  seq: number
  who: 'user' | 'agent' | 'tool' | 'note'
  name: string // name of the agent or tool; user for a person
  text: string
  thinking?: string
  status?: string // of a tool call: asked, waiting, running, or how it ended
}

export interface Past {
  seq: number
  at?: string
  title?: string
  status: 'idle' | 'running' | 'waiting' | 'halted'
  agent?: string
  turn?: number
  entries: PastEntry[]
  queued: { seq: number; text: string }[]
  plan?: { summary?: string; status: string; items: { title: string; status: string }[] }
  context?: { tokens: number; limit: number }
  usage: Required<Omit<Usage, 'estimated'>>
  files: string[] // changed by runs so far
  timers: { seq: number; at: string; reason: string }[]
}

export function pastAt(log: LogEvent[], seq: number): Past {
  const past: Past = {
    seq: 0,
    status: 'idle',
    entries: [],
    queued: [],
    usage: { input: 0, output: 0, cached: 0, written: 0, cost_micros: 0 },
    files: [],
    timers: [],
  }
  const outputs = new Map<number, { entry: PastEntry; kind: string }>()
  const calls = new Map<number, PastEntry>()
  const waiting = new Set<number>()
  const note = (event: LogEvent, text: string) =>
    past.entries.push({ seq: event.seq, who: 'note', name: '', text })
  const end = (call: number, status: string, text?: string) => {
    const entry = calls.get(call)
    waiting.delete(call)
    if (entry === undefined) return
    entry.status = status
    if (text !== undefined) entry.text = text
  }
  for (const event of log) {
    if (event.seq > seq) break
    past.seq = event.seq
    past.at = event.at
    switch (event.type) {
      case 'SessionOpened':
        past.title = event.body.title
        break
      case 'SessionRenamed':
        past.title = event.body.title
        break
      case 'SessionForked':
        note(event, `This session was forked from another one, with ${event.body.messages?.length ?? 0} messages.`)
        break
      case 'SessionHalted':
        past.status = 'halted'
        note(event, `The session was halted: ${event.body.reason}`)
        break
      case 'SessionReopened':
        past.status = 'idle'
        break
      case 'InputReceived':
        past.queued.push({ seq: event.seq, text: event.body.content })
        break
      case 'InputAdopted': {
        const input = past.queued.find((one) => one.seq === event.body.input)
        past.queued = past.queued.filter((one) => one !== input)
        past.entries.push({ seq: event.seq, who: 'user', name: 'user', text: input?.text ?? '' })
        break
      }
      case 'InputWithdrawn':
        past.queued = past.queued.filter((one) => one.seq !== event.body.input)
        break
      case 'RunStarted':
        past.status = 'running'
        past.agent = event.body.agent.name
        past.turn = 0
        break
      case 'RunFinished':
        past.status = 'idle'
        past.turn = undefined
        waiting.clear()
        if (event.body.outcome !== 'completed') note(event, event.body.message || `The run was ${event.body.outcome}.`)
        break
      case 'TurnStarted':
        past.turn = event.body.number
        break
      case 'TurnFinished':
        for (const key of ['input', 'output', 'cached', 'written', 'cost_micros'] as const)
          past.usage[key] += event.body.usage[key] ?? 0
        break
      case 'OutputStarted': {
        const entry: PastEntry = { seq: event.seq, who: 'agent', name: past.agent ?? 'agent', text: '' }
        past.entries.push(entry)
        outputs.set(event.seq, { entry, kind: event.body.kind })
        break
      }
      case 'OutputAppended': {
        const output = outputs.get(event.body.output)
        if (output?.kind === 'thinking') output.entry.thinking = (output.entry.thinking ?? '') + event.body.text
        else if (output !== undefined) output.entry.text += event.body.text
        break
      }
      case 'OutputFinished': {
        const output = outputs.get(event.body.output)
        if (output?.kind === 'thinking') output.entry.thinking = event.body.text
        else if (output !== undefined) output.entry.text = event.body.text
        break
      }
      case 'ToolCallRequested': {
        const entry: PastEntry = {
          seq: event.seq,
          who: 'tool',
          name: event.body.name,
          text: event.body.arguments,
          status: 'asked',
        }
        past.entries.push(entry)
        calls.set(event.seq, entry)
        break
      }
      case 'ApprovalRequested':
      case 'QuestionAsked': {
        const entry = calls.get(event.body.call)
        if (entry !== undefined) entry.status = 'waiting'
        waiting.add(event.body.call)
        break
      }
      case 'ApprovalDecided':
      case 'QuestionAnswered':
        end(event.body.call, 'answered')
        break
      case 'ToolCallStarted':
        end(event.body.call, 'running')
        break
      case 'ToolCallBlocked':
        end(event.body.call, 'blocked', event.body.reason)
        break
      case 'ToolCallFinished':
        end(event.body.call, event.body.outcome, event.body.result || undefined)
        break
      case 'PlanChanged':
        past.plan = { summary: event.body.summary, status: event.body.status, items: event.body.items ?? [] }
        break
      case 'FilesChanged':
        past.files = [...new Set([...past.files, ...event.body.files.map((file) => file.path)])]
        break
      case 'ContextMeasured':
        past.context = event.body
        break
      case 'ContextCompacted':
        past.context = { tokens: event.body.after, limit: event.body.limit }
        note(event, 'The context was compacted: the model is given a summary of everything above.')
        break
      case 'TimerSet':
        past.timers.push({ seq: event.seq, at: event.body.at, reason: event.body.reason })
        break
      case 'TimerFired':
      case 'TimerCancelled':
        past.timers = past.timers.filter((timer) => timer.seq !== event.body.timer)
        break
    }
  }
  if (past.status === 'running' && waiting.size > 0) past.status = 'waiting'
  return past
}
