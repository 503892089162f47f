import { expect, it } from 'vitest'
import { forkOf, pointAfter, pointBefore, saidBefore, seqOf } from './forks'
import type { ChatMessage } from './message'

const session = 'b0000000-0000-4000-8000-000000000001'
const base = { session, timestamp: '', text: '' }
const said = (seq: number): ChatMessage => ({ ...base, role: 'user', id: `u${seq}`, inputId: `${session}.${seq}` })
const answer = (id: string): ChatMessage => ({ ...base, role: 'agent', id, from: 'coder' })

it('a message parts a conversation before it, an answer after it', () => {
  const messages = [said(2), answer('a'), said(20), answer('b')]
  expect(pointBefore(messages[2]!, session, null)).toEqual({ session, at: 19 })
  expect(pointAfter(messages, messages[1]!, session)).toEqual({ session, at: 19 })
  expect(pointAfter(messages, messages[3]!, session)).toBeUndefined()
  expect(saidBefore(messages, messages[3]!)).toBe(messages[2])
  expect(seqOf({ ...said(2), inputId: 'another.2' }, session)).toBeUndefined()
})

it('the first message of a fork parts where its source does', () => {
  const fork = { source: 's', at: 17, messages: [] }
  expect(pointBefore(said(3), session, fork)).toEqual({ session: 's', at: 17 })
  expect(pointBefore(said(30), session, fork)).toEqual({ session, at: 29 })
})

it('a fork shows the conversation that it holds', () => {
  const { messages } = forkOf(
    {
      source: 's',
      at: 9,
      messages: [
        { role: 'user', text: 'Look around.', images: [{ type: 'image/png', data: 'AA==' }] },
        { role: 'assistant', text: 'I look.', calls: [{ id: 5, name: 'list_files', arguments: '{"path":"."}' }] },
        { role: 'tool', call: 5, text: 'notes.txt' },
        { role: 'assistant', text: 'One file.' },
      ],
    },
    session,
  )
  expect(messages.map((m) => [m.role, m.text])).toEqual([
    ['user', 'Look around.'],
    ['agent', 'I look.One file.'],
  ])
  expect(messages[0]!.images).toEqual(['data:image/png;base64,AA=='])
  expect(messages[1]!.content).toMatchObject([
    { type: 'text', text: 'I look.' },
    { type: 'tool_use', tool: 'list_files', args: { path: '.' }, output: 'notes.txt' },
    { type: 'text', text: 'One file.' },
  ])
})
