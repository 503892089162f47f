import { expect, test } from 'vitest'
import { plainly } from './plainly'

test('codes of the server become sentences', () => {
  expect(plainly('message blocked: pattern:ignore_instructions')).toBe(
    'The message was blocked: it looks like an attempt to change what the agent was told (rule “ignore instructions”).',
  )
  expect(plainly('This session was halted: canary_leak.')).toBe(
    'This session was halted: the model was about to reveal a part of its secret instructions.',
  )
  expect(plainly('The disk is full.')).toBe('The disk is full.')
})
