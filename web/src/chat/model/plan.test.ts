import { expect, test } from 'vitest'
import type { Plan } from '../../wire/bus.generated'
import { progress } from './plan'

const plan = (...statuses: string[]) => ({ items: statuses.map((status) => ({ title: 'x', status })) }) as Plan

test('only items that the agent marked count as done', () => {
  expect(progress(plan('done', 'in_progress', 'pending'))).toBe('1 of 3')
  expect(progress(plan('done', 'skipped', 'skipped'))).toBe('1 done, 2 not marked')
  expect(progress(plan('done', 'done'))).toBe('2 of 2')
})
