import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { consoleReducer, nothing, parseFrame, type ConsoleState, type Frame } from './frames'

// The transcripts that also test the projection of the server.
const folder = join(__dirname, '../../../dialect/debugconsole/testdata')
const transcripts = readdirSync(folder)
  .filter((name) => name.endsWith('.txtar'))
  .flatMap((name) =>
    readFileSync(join(folder, name), 'utf8')
      .split(/^-- frames --\n/m)
      .slice(1)
      .map((part, i) => ({
        name: `${name} ${i + 1}`,
        frames: part
          .split(/^-- /m)[0]!
          .split('\n')
          .filter((line) => line.startsWith('{')),
      })),
  )

function play(frames: Frame[]): ConsoleState {
  return frames.reduce((state, frame, at) => frozen(consoleReducer(state, { type: 'frame', frame, at })), nothing)
}

function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    Object.values(value).forEach(frozen)
  }
  return value
}

const texts = (state: ConsoleState) => state.messages.map((message) => `${message.type}: ${message.content}`)

describe('transcripts of the server', () => {
  it('are found', () => expect(transcripts.length).toBeGreaterThan(15))

  it.each(transcripts)('$name', ({ frames: lines }) => {
    const frames = lines.map((line) => parseFrame(line)!)
    expect(frames).not.toContain(null)
    const state = play(frames)
    // the chunks of a message, joined, are its answer, in one bubble between two tools
    const answers = new Map<unknown, string>()
    for (const frame of frames)
      if (frame.type === 'chunk') answers.set(frame.request_id, (answers.get(frame.request_id) ?? '') + frame.content)
    const bubbles = state.messages.filter((message) => message.type === 'assistant')
    const shown = new Map<unknown, string>()
    for (const { requestId, content } of bubbles) shown.set(requestId, (shown.get(requestId) ?? '') + content)
    expect(shown).toEqual(new Map([...answers].filter(([id]) => shown.has(id as string) || answers.get(id) !== '')))
    // every line, error and halt occurs once
    const count = (...types: string[]) => frames.filter((frame) => types.includes(frame.type)).length
    const tools = state.messages.filter((message) => message.type === 'tool' && message.toolName !== undefined)
    expect(tools).toHaveLength(
      count('tool_executed', 'tool_failed', 'tool_blocked'),
    )
    expect(state.messages.filter((message) => message.type === 'error')).toHaveLength(count('error'))
    expect(state.messages.filter((message) => message.type === 'halt')).toHaveLength(count('session_halt'))
    // no message that continued or ended is still being retried
    expect(state.messages.filter((message) => message.retrying !== undefined)).toEqual([])
    // an ended message waits for nothing
    for (const frame of frames)
      if (frame.type === 'error' || frame.type === 'session_halt' || frame.done === true)
        expect(bubbles.some((message) => message.requestId === frame.request_id && message.streaming)).toBe(false)
    const opened = frames
      .filter((frame) => ['approval_request', 'question', 'tool_call_unknown'].includes(frame.type))
      .map((frame) => frame.id)
    const closed = frames
      .filter((frame) => ['approval_closed', 'question_closed', 'tool_call_resolved'].includes(frame.type))
      .map((frame) => frame.id)
    if (count('session_halt') === 0)
      expect(state.cards.map((card) => card.id)).toEqual(opened.filter((id) => !closed.includes(id)))
    expect(new Set(state.messages.map((message) => message.id)).size).toBe(state.messages.length)
  })
})

describe('the document’s examples', () => {
  it('say what happened', () => {
    const state = play([
      { type: 'chunk', request_id: 'r', content: 'Based on...', done: false },
      { type: 'tool_executed', request_id: 'r', tool_name: 'search_players' },
      { type: 'tool_blocked', request_id: 'r', tool_name: 'bash', reason: 'not in allowlist' },
      { type: 'tool_failed', request_id: 'r', tool_name: 'fetch', reason: 'no route' },
      { type: 'chunk', request_id: 'r', content: ' the data', done: true },
      { type: 'error', request_id: 's', message: 'agent error: timeout' },
      { type: 'session_halt', request_id: 't', reason: 'canary token detected' },
    ])
    expect(texts(state)).toEqual([
      'assistant: Based on...',
      'tool: Calling `search_players`... done',
      'tool: Tool `bash` blocked: not in allowlist',
      'tool: Tool `fetch` failed: no route',
      'assistant:  the data',
      'error: agent error: timeout',
      'halt: canary token detected',
    ])
  })

  it('keep two messages that are answered at once apart', () => {
    const state = play([
      { type: 'chunk', request_id: 'a', content: '1', done: false },
      { type: 'chunk', request_id: 'b', content: '2', done: false },
      { type: 'chunk', request_id: 'a', content: '1', done: true },
      { type: 'chunk', request_id: 'b', content: '2', done: true },
    ])
    expect(texts(state)).toEqual(['assistant: 11', 'assistant: 22'])
  })
})

it('makes a bubble of a first chunk that is already the last', () => {
  const state = play([{ type: 'chunk', request_id: 'r', content: 'All of it.', done: true }])
  expect(state.messages).toEqual([
    { id: 'm1', type: 'assistant', content: 'All of it.', requestId: 'r', timestamp: 0, streaming: false },
  ])
})

it('ends a message that says nothing after its last tool without an empty bubble', () => {
  const state = play([
    { type: 'chunk', request_id: 'r', content: 'I look.', done: false },
    { type: 'tool_executed', request_id: 'r', tool_name: 'list_files' },
    { type: 'chunk', request_id: 'r', content: '', done: true },
  ])
  expect(texts(state)).toEqual(['assistant: I look.', 'tool: Calling `list_files`... done'])
  expect(state.messages[0]!.streaming).toBe(false)
})

it('ignores unknown frames', () => {
  const state = play([{ type: 'chunk', request_id: 'r', content: 'x', done: true }])
  expect(consoleReducer(state, { type: 'frame', frame: { type: 'weather' }, at: 1 })).toBe(state)
  for (const broken of ['', '{', 'null', '[]', '7', '{"type":3}', '{}']) expect(parseFrame(broken)).toBeNull()
})

it('survives frames with fields of a wrong type', () => {
  const state = play([
    { type: 'chunk', request_id: 7, content: null, done: 'yes' },
    { type: 'question', id: 'q', questions: 'none' },
    { type: 'approval_request' },
    { type: 'error' },
  ])
  expect(state.messages.map((message) => message.type)).toEqual(['assistant', 'error'])
  expect(state.cards).toHaveLength(2)
})

it('counts the messages that wait for an answer', () => {
  let state = consoleReducer(nothing, { type: 'sent', content: 'Hello', at: 1 })
  expect([state.pending, texts(state)]).toEqual([1, ['user: Hello']])
  state = consoleReducer(state, {
    type: 'frame',
    frame: { type: 'chunk', request_id: 'r', content: 'Hi', done: false },
    at: 2,
  })
  expect([state.pending, state.messages[1]!.streaming]).toEqual([1, true])
  const lost = consoleReducer(state, { type: 'lost', at: 3 })
  expect([lost.pending, lost.messages[1]!.streaming]).toEqual([0, false])
  state = consoleReducer(state, {
    type: 'frame',
    frame: { type: 'chunk', request_id: 'r', content: '', done: true },
    at: 3,
  })
  expect(state.pending).toBe(0)
})

it('says that another connection is another conversation', () => {
  expect(consoleReducer(nothing, { type: 'joined', at: 1 })).toBe(nothing)
  const state = consoleReducer(consoleReducer(nothing, { type: 'sent', content: 'Hello', at: 1 }), {
    type: 'joined',
    at: 2,
  })
  expect(state.messages[1]!.type).toBe('tool')
  expect(consoleReducer(state, { type: 'reset' })).toEqual(nothing)
})

describe('a model that does not answer', () => {
  const retry = (attempt: number) => ({
    type: 'problem',
    request_id: 'r1',
    message: `Acme is busy; retrying (attempt ${attempt} of 3)…`,
    problem: 'Acme is busy',
    retrying: true,
  })
  const over = { type: 'problem', request_id: 'r1', message: 'Acme is busy; gave up after 3 attempts.' }

  it('is one line, which says at last how it went', () => {
    expect(texts(play([retry(2), retry(3)]))).toEqual(['tool: Acme is busy; retrying (attempt 3 of 3)…'])
    expect(texts(play([retry(2), { type: 'chunk', request_id: 'r1', content: 'Hi', done: true }]))).toEqual([
      'tool: Acme is busy; a retry succeeded.',
      'assistant: Hi',
    ])
    expect(texts(play([retry(2), retry(3), over, { type: 'error', request_id: 'r1', message: 'busy' }]))).toEqual([
      'tool: Acme is busy; gave up after 3 attempts.',
      'error: busy',
    ])
    expect(texts(play([retry(2), { type: 'error', request_id: 'r1', message: 'cancelled' }]))).toEqual([
      'tool: Acme is busy.',
      'error: cancelled',
    ])
  })

  it('is not settled by another message, but by the end of the connection', () => {
    const state = play([retry(2), { type: 'chunk', request_id: 'r2', content: 'Hi', done: true }])
    expect(texts(state)[0]).toContain('retrying')
    expect(texts(consoleReducer(state, { type: 'lost', at: 9 }))[0]).toBe('tool: Acme is busy.')
  })
})
