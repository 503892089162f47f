import { expect, it } from 'vitest'
import type { Run } from '../wire/native.generated'
import { bucketsOf, matching, totalsOf } from './totals'

const now = Date.parse('2026-03-02T12:00:00Z')

function run(hoursAgo: number, some: Partial<Run> = {}): Run {
  const started = now - hoursAgo * 3_600_000
  return {
    id: `s.${hoursAgo}`,
    session: 's',
    root: 's',
    run: hoursAgo,
    agent: 'coder',
    owner: 'ann',
    started_at: new Date(started).toISOString(),
    ended_at: new Date(started + 1000 * (hoursAgo + 1)).toISOString(),
    outcome: 'completed',
    usage: { input: 100, output: 10, cost_micros: 2000 },
    ...some,
  }
}

const runs = [run(1), run(2, { outcome: 'failed', message: 'No key' }), run(30), run(-1, { outcome: undefined })]

it('adds runs up', () => {
  expect(totalsOf(runs)).toEqual({ runs: 4, failed: 1, input: 400, output: 40, cost: 8000, median: 2000 })
  expect(totalsOf([])).toEqual({ runs: 0, failed: 0, input: 0, output: 0, cost: 0, median: undefined })
})

it('sorts runs into equal spans of time', () => {
  const day = bucketsOf(runs, 'day', now)
  expect(day.length).toBe(24)
  expect(day.map((bucket) => bucket.runs).slice(-3)).toEqual([0, 1, 2])
  expect(day.reduce((sum, bucket) => sum + bucket.runs, 0)).toBe(3) // one is older
  const all = bucketsOf(runs, 'all', now)
  expect([all.length, all[0]!.runs, all.at(-1)!.runs]).toEqual([30, 1, 2])
  expect(bucketsOf([], 'all', now).every((bucket) => bucket.runs === 0)).toBe(true)
})

it('narrows by status and words', () => {
  const ids = (status: string, search: string) =>
    matching(runs, status, search, () => 'Fix the test').map((one) => one.run)
  expect(ids('', '')).toEqual([1, 2, 30, -1])
  expect(ids('failed', '')).toEqual([2])
  expect(ids('unfinished', '')).toEqual([-1])
  expect(ids('', 'KEY test')).toEqual([2])
  expect(ids('', 'nothing')).toEqual([])
})
