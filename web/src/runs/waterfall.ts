import { dollars, short } from '../ui/amounts'
import type { LogEvent } from '../wire/log.generated'
import type { Usage } from '../wire/native.generated'

// A run as bars over time: its turns, tool calls, waiting times and compactions. Pure: everything is computed from the
// log.

type SpanKind = 'ran' | 'waited' // worked, or waited for a person

export interface Span {
  kind: SpanKind
  start: number // milliseconds since the epoch
  end?: number // none: it is open
}

export interface Bar {
  id: number // the seq of its first event
  kind: 'turn' | 'tool' | 'compaction'
  name: string
  depth: number
  start: number
  end?: number
  status: string // running, waiting, or how it ended
  spans: Span[]
  note?: string // why it failed, or the decision
  usage?: Usage
  child?: string // the session of a sub-agent
  events: LogEvent[]
}

export interface Waterfall {
  start: number
  end: number // end of the known part
  bars: Bar[]
  events: LogEvent[] // of the run
}

export function waterfall(log: LogEvent[], run: number): Waterfall {
  const events = log.filter((event) => event.run === run || event.seq === run)
  const bars: Bar[] = []
  const byId = new Map<number, Bar>()
  const open = (
    event: LogEvent,
    bar: Omit<Bar, 'id' | 'start' | 'spans' | 'events' | 'status'>,
    spans: Span[] = [],
  ) => {
    const made: Bar = { id: event.seq, start: time(event), status: 'running', spans, events: [event], ...bar }
    bars.push(made)
    byId.set(event.seq, made)
  }
  const at = (id: unknown, event: LogEvent, change: (bar: Bar, at: number) => void) => {
    const bar = typeof id === 'number' ? byId.get(id) : undefined
    if (bar === undefined) return
    bar.events.push(event)
    change(bar, time(event))
  }
  let compaction: number | undefined

  for (const event of events) {
    const now = time(event)
    switch (event.type) {
      case 'TurnStarted':
        open(event, { kind: 'turn', name: `Turn ${event.body.number ?? ''}`.trim(), depth: 0 }, [
          { kind: 'ran', start: now },
        ])
        break
      case 'TurnFinished':
        at(event.body.turn, event, (bar, t) => {
          finish(
            bar,
            t,
            event.body.stop === 'failed' || event.body.stop === 'cut'
              ? 'failed'
              : event.body.stop === 'cancelled'
                ? 'cancelled'
                : 'done',
          )
          bar.usage = event.body.usage
          bar.note = text(event.body.message)
        })
        break
      case 'ToolCallRequested':
        open(event, { kind: 'tool', name: text(event.body.name) ?? 'tool', depth: 1 })
        break
      case 'ApprovalRequested':
      case 'QuestionAsked':
        at(event.body.call, event, (bar, t) => {
          bar.status = 'waiting'
          bar.spans.push({ kind: 'waited', start: t })
        })
        break
      case 'ApprovalDecided':
      case 'QuestionAnswered':
        at(event.body.call, event, (bar, t) => {
          bar.status = 'running'
          shut(bar, t)
          bar.note = event.type === 'ApprovalDecided' ? event.body.decision : event.body.ending
        })
        break
      case 'ToolCallStarted':
      case 'ChildSpawned':
        at(event.body.call, event, (bar, t) => {
          shut(bar, t)
          bar.spans.push({ kind: 'ran', start: t })
          if (event.type === 'ChildSpawned') bar.child = text(event.body.child)
        })
        break
      case 'ChildReturned':
      case 'ToolOutputAppended':
      case 'ExplanationRequested':
      case 'ApprovalExplained':
        at(event.body.call, event, () => {})
        break
      case 'ToolCallBlocked':
        at(event.body.call, event, (bar, t) => {
          finish(bar, t, 'blocked')
          bar.note = text(event.body.reason)
        })
        break
      case 'ToolCallFinished':
        at(event.body.call, event, (bar, t) => {
          finish(bar, t, text(event.body.outcome) ?? 'done')
          if (event.body.outcome === 'unknown') {
            bar.status = 'waiting'
            bar.end = undefined
            bar.spans.push({ kind: 'waited', start: t })
          } else if (event.body.outcome !== 'succeeded') bar.note = firstLine(text(event.body.result)) ?? bar.note
        })
        break
      case 'ToolCallResolved':
        at(event.body.call, event, (bar, t) => {
          finish(bar, t, event.body.resolution === 'abandon' ? 'cancelled' : 'done')
          bar.note = text(event.body.resolution)
        })
        break
      case 'CompactionStarted':
        compaction = event.seq
        open(event, { kind: 'compaction', name: 'Compaction', depth: 0 }, [{ kind: 'ran', start: now }])
        break
      case 'ContextCompacted':
      case 'CompactionFailed':
        at(compaction, event, (bar, t) => {
          finish(bar, t, event.type === 'ContextCompacted' ? 'done' : 'failed')
          if (event.type === 'CompactionFailed') bar.note = event.body.message
        })
        break
      case 'RunFinished':
        for (const bar of bars) if (bar.end === undefined) finish(bar, now, 'cancelled')
        break
    }
  }
  const start = events.length > 0 ? time(events[0]!) : 0
  return { start, end: Math.max(start, ...events.map(time)), bars, events }
}

// usageOf sums the usage of the turns so far; a run has a total only when it has ended.
export function usageOf(fall: Waterfall): Usage {
  const sum = { input: 0, output: 0, cached: 0, written: 0, cost_micros: 0 }
  for (const { usage } of fall.bars)
    for (const key of Object.keys(sum) as (keyof typeof sum)[]) sum[key] += usage?.[key] ?? 0
  return sum
}

function finish(bar: Bar, at: number, status: string): void {
  shut(bar, at)
  bar.end = at
  bar.status = status
}

// shut ends the open span.
function shut(bar: Bar, at: number): void {
  const last = bar.spans.at(-1)
  if (last !== undefined && last.end === undefined) last.end = at
}

function time(event: LogEvent): number {
  return Date.parse(event.at)
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function firstLine(value: string | undefined): string | undefined {
  return value?.split('\n', 1)[0]?.slice(0, 200)
}

// money is the cost of a run; undefined if the price is unknown.
export function money(usage: Usage | undefined): string | undefined {
  return usage?.cost_micros ? dollars(usage.cost_micros) : undefined
}

export function tokens({ input = 0, output = 0 }: Usage = {}): string | undefined {
  return input + output === 0 ? undefined : `${short(input)} in, ${short(output)} out`
}
