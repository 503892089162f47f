import { expect, test } from 'vitest'
import { newsOf } from './notify'

const message = { id: 'x', seq: 1, rev: 1, ts_ms: 1, agent_id: 'coder', session_id: 's' }
const ended = (outcome: unknown) => newsOf({ ...message, kind: 'run', phase: 'outcome', data: { outcome } })

test('people are told of what waits and of what has ended', () => {
  expect(newsOf({ ...message, kind: 'ask_user' })).toBe('coder waits for you')
  expect(ended({ type: 'none', run_status: 'completed' })).toBe('coder has finished')
  expect(ended({ type: 'plan', run_status: 'completed' })).toBe('coder proposes a plan')
  expect(ended({ type: 'none', run_status: 'failed' })).toBe('coder did not finish')
  expect(ended(null)).toBe('coder did not finish')
})

test('they are not told of what they did, or of every word', () => {
  expect(ended({ type: 'none', run_status: 'cancelled' })).toBeUndefined()
  expect(newsOf({ ...message, kind: 'run', phase: 'sync' })).toBeUndefined()
  expect(newsOf({ ...message, kind: 'message' })).toBeUndefined()
})
