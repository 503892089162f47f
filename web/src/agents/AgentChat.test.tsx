import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { act, cleanup, fireEvent, render, screen } from '@testing-library/react'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { FakeSocket } from '../wire/fakeSocket'
import { AgentChat } from './AgentChat'

beforeEach(() => vi.stubGlobal('WebSocket', FakeSocket))

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
  FakeSocket.made = []
})

async function shown() {
  const view = render(
    <QueryClientProvider client={new QueryClient()}>
      <AgentChat agentId="coder" />
    </QueryClientProvider>,
  )
  await act(async () => {})
  act(() => FakeSocket.last.open())
  return view
}

const say = (...frames: object[]) => act(() => frames.forEach((frame) => FakeSocket.last.say(frame)))
const types = () =>
  [...document.querySelectorAll('[data-type]')].map((one) => [(one as HTMLElement).dataset.type, one.textContent])

it('shows a conversation as the document has it', async () => {
  await shown()
  expect(screen.getByRole('status', { name: 'Connection' }).textContent).toContain('Connected')
  const box = screen.getByLabelText('Message coder')
  fireEvent.change(box, { target: { value: 'What players match?' } })
  fireEvent.keyDown(box, { key: 'Enter', shiftKey: true })
  expect(FakeSocket.last.sent).toEqual([])
  fireEvent.keyDown(box, { key: 'Enter' })
  expect(FakeSocket.last.sent).toEqual([{ type: 'message', content: 'What players match?' }])
  expect(box).toHaveProperty('value', '')
  expect(screen.getByText('Working…')).toBeTruthy()
  say(
    { type: 'chunk', request_id: 'r', content: 'Based on', done: false },
    { type: 'tool_executed', request_id: 'r', tool_name: 'search_players' },
    { type: 'tool_blocked', request_id: 'r', tool_name: 'bash', reason: 'not in allowlist' },
    { type: 'chunk', request_id: 'r', content: ' the data', done: true },
    { type: 'error', request_id: 'q', message: 'message blocked: potential prompt injection' },
    { type: 'session_halt', request_id: 'z', reason: 'canary token detected' },
  )
  expect(types()).toEqual([
    ['user', 'What players match?'],
    ['assistant', 'Based on'],
    ['tool', 'Calling `search_players`... done'],
    ['tool', 'Tool `bash` blocked: not in allowlist'],
    ['assistant', ' the data'],
    ['error', 'message blocked: potential prompt injection'],
    ['halt', 'Session haltedcanary token detected'],
  ])
  const aligned = (type: string) => document.querySelector(`[data-type="${type}"]`)!.className
  expect([aligned('user'), aligned('assistant'), aligned('tool')].map((name) => /self-(\w+)/.exec(name)?.[1])).toEqual([
    'end',
    'start',
    'center',
  ])
  expect(screen.getAllByRole('alert')).toHaveLength(2)
})

it('makes tricks of an answer visible', async () => {
  await shown()
  say({ type: 'chunk', request_id: 'r', content: 'a\u202eb\u001b[31m<b>', done: true })
  expect(types()).toEqual([['assistant', 'a⟨U+202E⟩b␛[31m<b>']])
})

it('shows an open card, and removes it once it is closed', async () => {
  await shown()
  say({
    type: 'approval_request',
    request_id: 'r',
    id: 's.4',
    tool_name: 'shell',
    command: 'rm old.log',
    expires_at: '2026-01-03T03:04:05Z',
    agent: 'explorer',
  })
  expect(screen.getByRole('article', { name: 'explorer wants to run a command' }).textContent).toContain('rm old.log')
  fireEvent.click(screen.getByRole('button', { name: 'Deny' }))
  expect(FakeSocket.last.sent).toEqual([{ type: 'approval_response', decision: 'deny', id: 's.4' }])
  say(
    { type: 'approval_closed', request_id: 'r', id: 's.4', decision: 'deny' },
    {
      type: 'question',
      request_id: 'r',
      id: 's.5',
      questions: [{ question: 'Tea or coffee?', options: [{ label: 'Tea' }] }],
    },
  )
  expect(screen.queryByRole('article', { name: /wants to/ })).toBeNull()
  fireEvent.click(screen.getByLabelText('Tea'))
  fireEvent.click(screen.getByRole('button', { name: 'Answer' }))
  expect(FakeSocket.last.sent.at(-1)).toEqual({ type: 'question_response', answers: [['Tea']], id: 's.5' })
})

it('has all five answers, shows the rule for similar calls, and explains', async () => {
  await shown()
  const rule = 'mkdir with other arguments'
  say({ type: 'approval_request', request_id: 'r', id: 's.4', tool_name: 'shell', command: 'mkdir a', similar: rule })
  const card = screen.getByRole('article')
  expect(card.textContent).toContain(rule)
  for (const name of [/^Allow once/, /^Always$/, /^Always similar$/, /^Deny( ⌫)?$/, /^Deny and stop$/])
    expect(screen.getByRole('button', { name })).toBeTruthy()
  fireEvent.click(screen.getByRole('button', { name: 'Explain' }))
  expect(FakeSocket.last.sent).toEqual([{ type: 'approval_response', decision: 'explain', id: 's.4' }])
  expect(screen.getByRole('button', { name: 'Explaining…' })).toHaveProperty('disabled', true)
  say({ type: 'approval_explained', request_id: 'r', id: 's.4', text: 'It makes a folder.' })
  expect(screen.getByRole('note').textContent).toContain('It makes a folder.')
  fireEvent.click(screen.getByRole('button', { name: 'Always similar' }))
  expect(FakeSocket.last.sent.at(-1)).toEqual({
    type: 'approval_response',
    decision: 'always',
    scope: 'similar',
    id: 's.4',
  })
})

it('keeps what was typed while there is no connection', async () => {
  await shown()
  const box = screen.getByLabelText('Message coder')
  fireEvent.change(box, { target: { value: 'Hello' } })
  act(() => FakeSocket.last.drop(1001, 'The agent was stopped.'))
  fireEvent.keyDown(box, { key: 'Enter' })
  expect(box).toHaveProperty('value', 'Hello')
  expect(screen.getByRole('alert').textContent).toBe('The agent was stopped.')
  expect(screen.getByRole('button', { name: 'Connect again' })).toBeTruthy()
})

it('closes with 1000 when the page goes', async () => {
  const view = await shown()
  view.unmount()
  expect(FakeSocket.last.closed).toBe(1000)
})
