import { expect, test } from 'vitest'
import { hashOf, indexOf, targetOf } from './jump'

const messages = [
  { role: 'user', timestampMs: 1000 },
  { role: 'agent', timestampMs: 1000 },
  { role: 'user', timestampMs: 5000 },
  { role: 'agent', timestampMs: 5001 },
]

test('a passage leads to its message', () => {
  const at = (ms: number) => new Date(ms).toISOString()
  const find = (from: 'person' | 'agent', ms: number) =>
    indexOf(messages, targetOf('#' + hashOf({ from, at: at(ms) }))!)
  expect(find('person', 1000)).toBe(0)
  expect(find('agent', 1900)).toBe(1)
  expect(find('agent', 5000)).toBe(3)
  expect(find('person', 5000)).toBe(2)
  expect(find('agent', 999_999)).toBe(3)
  expect(find('agent', 3)).toBeUndefined()
})

test('an address that names no message leads nowhere', () => {
  for (const hash of ['', '#', '#main', 'user-', 'agent-x', 'user-1 2', '#user-99999999999999999'])
    expect(targetOf(hash)).toBeUndefined()
})
