import { expect, test } from 'vitest'
import { answerOf } from './blocks'
import { agentMessage, initialState, type ChatState } from './chatReducer'
import { announcement, repeatable, wholeRun } from './ending'
import type { ChatMessage, ToolUse } from './message'

const said: ChatMessage = { role: 'user', text: 'hello', timestamp: '', id: 'u', session: 's', to: 'coder' }
const answer = (over: Partial<ChatMessage>): ChatMessage => ({
  ...agentMessage('s', 'a', 'coder', 0),
  isGenerating: false,
  ...over,
})
const state = (...messages: ChatMessage[]): ChatState => ({ ...initialState('s'), messages, loaded: true })
const tool = (id: string, turn: number): ToolUse => ({
  type: 'tool_use',
  id,
  tool: 'shell',
  args: {},
  status: 'done',
  summary: '',
  output: '',
  cut: 0,
  startedMs: 0,
  turn,
})

test('the last message can be sent again if its answer ended badly', () => {
  expect(repeatable(state(said, answer({ outcome: 'failed' })))?.said).toBe(said)
  expect(repeatable(state(said, answer({ outcome: 'cancelled' })))?.answer.id).toBe('a')
  expect(repeatable(state(said, answer({ outcome: 'completed' })))).toBeUndefined()
  expect(repeatable(state(said, answer({ outcome: 'halted' })))).toBeUndefined()
  expect(repeatable(state(said, answer({ outcome: 'failed', isGenerating: true })))).toBeUndefined()
  expect(repeatable(state(answer({ outcome: 'failed' }), said))).toBeUndefined()
})

test('a screen reader hears how a run ended', () => {
  expect(announcement(state(said, answer({ outcome: 'completed' })), 'coder', false)).toBe('coder has finished.')
  expect(announcement(state(said, answer({ outcome: 'failed' })), 'coder', false)).toBe('coder has failed.')
  expect(announcement(state(said, answer({ outcome: 'cancelled' })), 'coder', false)).toBe('coder was stopped.')
  expect(announcement(state(), 'coder', false)).toBe('')
})

test('a run that was steered keeps the tools that it used before', () => {
  const earlier = answer({ id: 'x', outcome: 'completed', content: [tool('old', 1)], turns: [1] })
  const before = answer({ id: 'b', content: [tool('one', 1), tool('two', 2)], turns: [1, 2], timestampMs: 1 })
  const after = answer({ id: 'c', content: [tool('three', 1)], turns: [3], outcome: 'completed' })
  const run = wholeRun(state(said, earlier, said, before, said, after))!
  expect(run.turns).toEqual([1, 2, 3])
  expect(run.content!.map((block) => [(block as ToolUse).id, (block as ToolUse).turn])).toEqual([
    ['one', 1],
    ['two', 2],
    ['three', 3],
  ])
  expect(run.outcome).toBe('completed')
})

test('the parts of an answer are copied as paragraphs', () => {
  const text = (words: string) => ({ type: 'text' as const, text: words, open: false })
  const message = answer({ text: 'I look.Done.', content: [text('I look.'), tool('one', 1), text('Done.')] })
  expect(answerOf(message)).toBe('I look.\n\nDone.')
})
