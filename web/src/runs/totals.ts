import type { Run } from '../wire/native.generated'

// Totals of a list of runs. Pure.

const hour = 3_600_000
export const day = 24 * hour

// spans are the time spans of the filter, each with the length of a bar in the plots.
export const spans = {
  day: { name: 'Last 24 hours', length: day, bar: hour },
  week: { name: 'Last 7 days', length: 7 * day, bar: 6 * hour },
  month: { name: 'Last 30 days', length: 30 * day, bar: day },
  all: { name: 'All', length: undefined, bar: undefined },
} as const

export type SpanName = keyof typeof spans

export function isSpan(name: string): name is SpanName {
  return Object.hasOwn(spans, name)
}

export interface Totals {
  runs: number
  failed: number
  input: number
  output: number
  cost: number // millionths of a dollar
  median?: number // median duration of the finished runs in milliseconds
}

export function totalsOf(runs: Run[]): Totals {
  const took = runs
    .flatMap((run) => (run.ended_at === undefined ? [] : [Date.parse(run.ended_at) - Date.parse(run.started_at)]))
    .sort((a, b) => a - b)
  const sum = (of: (run: Run) => number | undefined) => runs.reduce((all, run) => all + (of(run) ?? 0), 0)
  return {
    runs: runs.length,
    failed: runs.filter((run) => run.outcome === 'failed' || run.outcome === 'interrupted').length,
    input: sum((run) => run.usage?.input),
    output: sum((run) => run.usage?.output),
    cost: sum((run) => run.usage?.cost_micros),
    median: took[Math.floor((took.length - 1) / 2)],
  }
}

export interface Bucket {
  start: number
  end: number
  runs: number
  failed: number
  cost: number
}

// bucketsOf sorts runs into spans of equal length, from the oldest to now.
export function bucketsOf(runs: Run[], span: SpanName, now: number): Bucket[] {
  const starts = runs.map((run) => Date.parse(run.started_at))
  const { length, bar } = spans[span]
  const whole = length ?? Math.max(hour, now - Math.min(now - hour, ...starts))
  const count = bar === undefined ? 30 : Math.round(whole / bar)
  const each = whole / count
  const from = now - whole
  const buckets = Array.from({ length: count }, (_, at): Bucket => {
    const start = from + at * each
    return { start, end: start + each, runs: 0, failed: 0, cost: 0 }
  })
  runs.forEach((run, at) => {
    // A run that began a moment after `now` belongs to the last bucket.
    const bucket = buckets[Math.min(count - 1, Math.floor((starts[at]! - from) / each))]
    if (bucket === undefined) return
    bucket.runs++
    if (run.outcome === 'failed' || run.outcome === 'interrupted') bucket.failed++
    bucket.cost += run.usage?.cost_micros ?? 0
  })
  return buckets
}

// matching filters a list by status and search words.
export function matching(runs: Run[], status: string, search: string, titleOf: (run: Run) => string): Run[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean)
  return runs.filter((run) => {
    const is = run.outcome ?? (run.waiting ? 'waiting' : 'running')
    const wanted = status === '' || is === status || (status === 'unfinished' && run.outcome === undefined)
    if (!wanted) return false
    const text = `${run.agent} ${titleOf(run)} ${run.message ?? ''} ${run.code ?? ''} ${run.id}`.toLowerCase()
    return words.every((word) => text.includes(word))
  })
}
