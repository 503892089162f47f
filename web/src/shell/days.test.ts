import { expect, test } from 'vitest'
import { byDay } from './days'
import { pageName } from './titles'

test('days are counted as people count them', () => {
  const now = new Date(2026, 2, 30, 0, 30)
  const at = (y: number, m: number, d: number, h = 12) => new Date(y, m, d, h).toISOString()
  const groups = byDay(
    [at(2026, 2, 30, 0), at(2026, 2, 29, 23), at(2026, 2, 28), at(2026, 2, 24), at(2026, 2, 23), at(2025, 1, 1)],
    (x) => x,
    now,
  )
  expect(groups.map((g) => [g.day, g.items.length])).toEqual([
    ['Today', 1],
    ['Yesterday', 1],
    ['Last 7 days', 2],
    ['Last 30 days', 1],
    ['Older', 1],
  ])
})

test('a clock that is ahead makes no day of its own', () => {
  expect(byDay(['2026-03-02T09:00:00'], (x) => x, new Date('2026-03-01T09:00:00'))[0]?.day).toBe('Today')
})

test('every page has a name', () => {
  const session = {
    id: '1',
    root: '1',
    owner: '',
    agent: '',
    title: 'Fix it',
    status: 'idle',
    transient: false,
    head: 1,
    opened_at: '',
    updated_at: '',
  }
  expect(
    ['/', '/chat/1', '/chat/2', '/agents', '/agents/co%20der', '/runs/1.2', '/nowhere'].map((p) =>
      pageName(p, [session]),
    ),
  ).toEqual(['New conversation', 'Fix it', 'Conversation', 'Agents', 'co der', 'Run', 'Page not found'])
})
