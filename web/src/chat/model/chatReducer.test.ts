import { describe, expect, it } from 'vitest'
import type { UiMessage } from '../../wire/bus.generated'
import { chatReducer, current, initialState, type ChatState } from './chatReducer'
import { answerOf } from './blocks'
import { grouped } from './groups'
import { getMessagePhase, type ToolUse } from './message'
import { frameOf } from './sseEventHandlers'
import { took } from './tools'
import { settled, transcripts } from './transcripts.test-data'

const session = '550e8400-e29b-41d4-a716-446655440000'

function fold(messages: UiMessage[], of = session, from: ChatState = initialState(of)): ChatState {
  return chatReducer(from, { type: 'RECEIVE', frames: messages.map((m) => frameOf(m, of)) })
}

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    Object.values(value).forEach(freeze)
  }
  return value
}

let next = 0
function said(kind: string, over: Partial<UiMessage> = {}): UiMessage {
  next += 8
  return {
    id: `${kind}-${next}`,
    seq: next,
    rev: next,
    ts_ms: 1000 + next,
    kind,
    agent_id: 'coder',
    session_id: session,
    ...over,
  }
}
const user = (text: string, input: string, to = 'coder') =>
  said('message', { text, agent_id: 'user', data: { from: 'user', to, role: 'user', input_id: input } })
const doing = (status: string, text: string, over: Partial<UiMessage> = {}) =>
  said('activity', { phase: 'doing', text, data: { status }, ...over })
const queue = (items: string[], over: object = {}) =>
  said('queue', {
    data: {
      items: items.map((id) => ({
        id,
        agent_id: 'coder',
        session_id: session,
        preview: 'preview of ' + id,
        timestamp: 1,
      })),
      ...over,
    },
  })
const outcome = (status = 'completed') =>
  said('run', { phase: 'outcome', data: { outcome: { type: 'none', run_status: status } } })

describe('transcripts of the projectors', () => {
  const all = transcripts()
  it('are there', () => expect(all.length).toBeGreaterThan(15))

  it.each(all)('$name', ({ messages, session: of }) => {
    const whole = freeze(fold(messages, of))

    // Every run ends, and none of its parts stays open.
    const lastRun = messages.findLastIndex((m) => m.session_id === of && m.kind === 'run' && m.phase === 'outcome')
    const later = messages
      .slice(lastRun + 1)
      .some((m) => m.session_id === of && ['activity', 'token', 'message'].includes(m.kind))
    if (lastRun >= 0 && !later) {
      expect(current(whole)).toBe(-1)
      for (const m of whole.messages) expect(getMessagePhase(m)).toBe('done')
      expect(whole.cards.filter((card) => card.session === of)).toEqual([])
    }

    // Earlier messages are not folded again.
    expect(fold(messages, of, whole)).toEqual(whole)

    // History ends in the same picture.
    expect(fold(settled(messages), of)).toEqual(whole)

    // So does a connection that is lost at any message and resumes too early.
    for (let lost = 0; lost <= messages.length; lost++) {
      const before = freeze(fold(messages.slice(0, lost), of))
      expect(fold(messages.slice(Math.max(0, lost - 3)), of, before)).toEqual(whole)
      // And a reload in the middle: history until then, and the rest live.
      expect(fold(messages.slice(lost), of, fold(settled(messages.slice(0, lost)), of))).toEqual(whole)
    }
  })
})

describe('a single agent turn', () => {
  it('goes through the six steps of the document', () => {
    let state = initialState(session)
    const step = (m: UiMessage) => {
      state = fold([m], session, freeze(state))
      return getMessagePhase(state.messages.at(-1)!)
    }
    step(user('Fix it', 's.2'))
    expect(state.messages.map((m) => [m.role, m.text, m.isGenerating])).toEqual([
      ['user', 'Fix it', undefined],
      ['agent', '', true],
    ])
    expect(step(said('token', { text: 'Hm. ', data: { thinking: true } }))).toBe('thinking')
    expect(step(doing('calling_tool', 'Reading file.ts'))).toBe('working')
    expect(state.messages.at(-1)).toMatchObject({
      activitySummary: 'Reading file.ts',
      activityEntries: ['Reading file.ts'],
    })
    expect(step(said('token', { text: 'Found ' }))).toBe('streaming')
    expect(step(said('token', { text: 'it.' }))).toBe('streaming')
    expect(state.messages.at(-1)).toMatchObject({ text: 'Found it.', liveText: 'Found it.' })
    expect(step(said('text_segment', { text: 'Found it.' }))).toBe('streaming')
    expect(state.messages.at(-1)).toMatchObject({ text: 'Found it.', liveText: '', segments: [{ text: 'Found it.' }] })
    expect(step(outcome())).toBe('done')
    expect(state.messages.at(-1)?.content?.map((block) => block.type)).toEqual(['thinking', 'text'])
    expect(state.messages).toHaveLength(2)
  })

  it('filters transient statuses', () => {
    for (const text of ['Thinking...', 'Model loading...', 'Running']) {
      expect(getMessagePhase({ isGenerating: true, activitySummary: text })).toBe('streaming')
    }
    expect(getMessagePhase({ isGenerating: true, activitySummary: 'Reading a' })).toBe('working')
    expect(getMessagePhase({ isGenerating: true, isThinking: true, activitySummary: 'Reading a' })).toBe('thinking')
    expect(getMessagePhase({ isThinking: true, activitySummary: 'Reading a' })).toBe('done')
  })

  it('shows an answer once, though it is sent twice', () => {
    const answer = said('message', { text: 'One. Two.', data: { from: 'coder', to: 'user', role: 'assistant' } })
    const state = fold([
      user('Hi', 's.2'),
      said('token', { text: 'One. ' }),
      said('text_segment', { text: 'One. ' }),
      said('token', { text: 'Two.' }),
      said('text_segment', { text: 'Two.' }),
      { ...answer, seq: next + 1 },
      outcome(),
    ])
    expect(state.messages.map((m) => m.text)).toEqual(['Hi', 'One. Two.'])
  })

  it('shows what was not streamed: an explanation, and a word from the system', () => {
    const state = fold([
      user('Hi', 's.2'),
      said('ask_user', { data: { question_id: 's.7', questions: [] } }),
      said('message', { text: 'It writes a file.', data: { from: 'coder', to: 'user', role: 'assistant' } }),
      said('message', {
        text: 'The key is wrong.',
        agent_id: 'system',
        data: { from: 'system', to: 'user', role: 'assistant' },
      }),
      outcome('failed'),
    ])
    expect(state.messages.at(-1)?.content).toEqual([
      { type: 'explanation', text: 'It writes a file.' },
      { type: 'notice', text: 'The key is wrong.' },
    ])
    expect(state.messages.at(-1)?.outcome).toBe('failed')
    expect(state.cards).toMatchObject([{ question_id: 's.7', explained: true }])
  })
})

describe('a model that does not answer', () => {
  const retry = (id: string, state: string, text: string) =>
    said('message', {
      id,
      text,
      agent_id: 'system',
      data: { from: 'system', to: 'user', role: 'assistant', retry: state },
    })
  const notices = (state: ChatState) =>
    state.messages.flatMap((m) => m.content ?? []).filter((block) => block.type === 'notice')

  it('is one line, which says at last how it went', () => {
    const state = fold([
      user('Hi', 's.2'),
      doing('model_loading', 'Model loading...'),
      retry('retry-1', 'retrying', '2 of 3'),
      retry('retry-1', 'retrying', '3 of 3'),
      retry('retry-2', 'retrying', 'other'),
    ])
    expect(notices(state).map((n) => n.text)).toEqual(['3 of 3', 'other'])
    const after = fold(
      [retry('retry-1', 'answered', 'went on'), said('token', { text: 'Hello' }), outcome()],
      session,
      state,
    )
    expect(notices(after)).toEqual([
      { type: 'notice', text: 'went on', retry: { id: 'retry-1', state: 'answered' } },
      { type: 'notice', text: 'other', retry: { id: 'retry-2', state: 'retrying' } },
    ])
  })

  it('is found again in a message that has ended', () => {
    const state = fold([
      user('Hi', 's.2'),
      doing('model_loading', 'Model loading...'),
      retry('retry-1', 'retrying', '2 of 3'),
      user('Wait', 's.8'),
      queue(['s.8']),
      queue([]),
      retry('retry-1', 'answered', 'went on'),
    ])
    expect(state.messages.filter((m) => m.role === 'agent')).toHaveLength(2)
    expect(notices(state).map((n) => n.text)).toEqual(['went on'])
  })
})

describe('what is said while the agent is busy', () => {
  const busy = () => [
    user('Count', 's.2'),
    doing('working', 'Working...'),
    said('token', { text: '1 2' }),
    user('Stop', 's.8'),
    queue(['s.8']),
  ]

  it('waits, and is answered from where it was read', () => {
    const waiting = fold(busy())
    expect(waiting.messages.map((m) => m.text)).toEqual(['Count', '1 2'])
    expect(waiting.waiting.map((m) => [m.text, m.inputId])).toEqual([['Stop', 's.8']])

    const read = fold([queue([]), said('token', { text: 'Stopped.' }), outcome()], session, waiting)
    expect(read.messages.map((m) => m.text)).toEqual(['Count', '1 2', 'Stop', 'Stopped.'])
    expect(read.waiting).toEqual([])
    expect(current(read)).toBe(-1)
  })

  it('is gone when it was withdrawn', () => {
    const waiting = fold(busy())
    const state = fold([queue([], { withdrawn: 's.8' })], session, waiting)
    expect(state.messages.map((m) => m.text)).toEqual(['Count', '1 2'])
    expect(state.waiting).toEqual([])
  })

  it('is known by its preview where history begins after it', () => {
    const state = fold([doing('working', 'Working...'), queue(['s.8'])])
    expect(state.waiting.map((m) => m.text)).toEqual(['preview of s.8'])
  })
})

describe('sub-agents', () => {
  const child = '44444444-4444-4444-8444-000000000001'
  const spawned = () =>
    said('run', {
      phase: 'subagent_spawned',
      data: { subagent_id: 'explorer', subagent_session_id: child, task: 'look' },
    })

  it('are in the tree of the message, and nowhere else', () => {
    const inChild = { session_id: child, agent_id: 'explorer' }
    const state = fold([
      user('Go', 's.2'),
      spawned(),
      said('message', { ...inChild, text: 'look', data: { from: 'parent', to: 'explorer', role: 'user' } }),
      doing('calling_tool', 'Reading a', inChild),
      said('token', { ...inChild, text: 'Nothing.' }),
      said('ask_user', { ...inChild, data: { question_id: child + '.7', questions: [] } }),
      said('run', {
        phase: 'subagent_result',
        data: { subagent_id: 'explorer', subagent_session_id: child, outcome: { run_status: 'completed' } },
      }),
    ])
    expect(state.messages.map((m) => [m.role, m.text])).toEqual([
      ['user', 'Go'],
      ['agent', ''],
    ])
    const [entry] = state.messages[1]!.subagentTree!
    expect(entry).toMatchObject({ id: child, agent: 'explorer', task: 'look', status: 'completed' })
    expect(entry!.message.text).toBe('Nothing.')
    expect(state.cards.map((card) => card.agent)).toEqual(['explorer'])
  })

  it('end with the run that asked for them', () => {
    const state = fold([user('Go', 's.2'), spawned(), outcome('cancelled')])
    expect(state.messages[1]!.subagentTree![0]).toMatchObject({ status: 'cancelled' })
  })
})

describe('history', () => {
  const page = (n: number) => [
    user(`q${n}`, `s.${n}`),
    doing('working', 'Working...'),
    said('token', { text: `a${n}`, phase: 'done' }),
    outcome(),
  ]

  it('is put in front page by page, and is the same as the whole', () => {
    const pages = [1, 2, 3].map(page)
    const frames = pages.map((messages) => messages.map((m) => frameOf(m, session)))
    let state = chatReducer(initialState(session), { type: 'LOAD_HISTORY', frames: frames[2]!, earlier: 'b' })
    state = chatReducer(state, { type: 'PREPEND_HISTORY', frames: frames[1]!, earlier: 'a' })
    state = chatReducer(freeze(state), { type: 'PREPEND_HISTORY', frames: frames[0]!, earlier: null })
    expect(state).toEqual({ ...fold(pages.flat()), loaded: true })
  })

  it('fetched again takes the place of what was there', () => {
    const frames = page(1).map((m) => frameOf(m, session))
    const once = chatReducer(initialState(session), { type: 'LOAD_HISTORY', frames, earlier: null })
    expect(chatReducer(once, { type: 'LOAD_HISTORY', frames, earlier: null })).toEqual(once)
  })
})

describe('the rest', () => {
  it('keeps the end of a long output, and says how much is gone', () => {
    const input = user('Go', 's.2')
    const start = said('content_block', { phase: 'start', data: { block_id: 'b', tool: 'shell', args: {} } })
    const lines = Array.from({ length: 3 }, () =>
      said('tool_progress', { data: { block_id: 'b', tool: 'shell', line: 'x'.repeat(40_000) } }),
    )
    const [tool] = fold([input, start, ...lines]).messages[1]!.content!
    expect(tool).toMatchObject({ type: 'tool_use', cut: 3 * 40_001 - 65_536 })
  })

  it('survives what is not as it should be', () => {
    for (const kind of [
      'run',
      'message',
      'activity',
      'queue',
      'token',
      'text_segment',
      'ask_user',
      'model_fallback',
      'tool_progress',
      'content_block',
      'widget_resolved',
      'turn_complete',
      'news',
    ]) {
      for (const data of [
        undefined,
        null,
        7,
        'x',
        [],
        { items: 7, questions: [null], plan: [], files: {} },
        { items: [{ id: 'x', timestamp: 1e300 }], role: 'user' },
      ]) {
        for (const phase of [
          '',
          'start',
          'done',
          'outcome',
          'plan_update',
          'change_report',
          'subagent_spawned',
          'context_usage',
        ]) {
          for (const ts_ms of [1, 1e20, NaN])
            expect(() => fold([said(kind, { data, phase, ts_ms, text: undefined })])).not.toThrow()
        }
      }
    }
  })

  it('puts the report of a cancelled run below its answer, though the next message was sent', () => {
    const { messages } = fold([
      user('Go', 's.2'),
      doing('calling_tool', 'Writing a.txt'),
      outcome('cancelled'),
      user('And?', 's.9'),
      said('run', {
        phase: 'change_report',
        data: { files: [{ path: 'a.txt', summary: 'Added', diff: '' }], truncated_count: 0 },
      }),
    ])
    const reports = messages.map((m) => (m.content ?? []).some((block) => block.type === 'change_report'))
    expect(reports).toEqual([false, true, false, false])
  })

  it('clears', () => {
    const state = fold([user('Go', 's.2')])
    expect(chatReducer(state, { type: 'CLEAR_MESSAGES' })).toMatchObject({ messages: [], seq: state.seq })
  })
})

describe('times and marks', () => {
  const asked = (id: string, over: Partial<UiMessage> = {}) =>
    said('ask_user', {
      data: { question_id: id, questions: [{ header: 'Permission', question: 'Allow shell?\n\nmake', options: [] }] },
      ...over,
    })
  const tool = (phase: 'start' | 'update', data: object, over: Partial<UiMessage> = {}) =>
    said('content_block', { phase, data: { block_id: 'b1', tool: 'shell', args: {}, ...data }, ...over })

  it('the time that a person takes is not the tool’s', () => {
    const waits = fold([
      user('Go', 'i1'),
      doing('model_loading', 'Model loading...'),
      tool('start', {}, { ts_ms: 10_000 }),
      asked('q1', { ts_ms: 10_100 }),
      said('widget_resolved', { ts_ms: 70_100, data: { widget_id: 'q1', resolution: 'allow' } }),
    ])
    const running = waits.messages[1]!
    expect(running.content?.[0]).toMatchObject({ startedMs: 70_100 })
    expect(running.waitedMs).toBe(60_000)
    const done = fold([tool('update', { status: 'done', duration_ms: 700 }, { ts_ms: 70_900 })], session, waits)
    expect(took(done.messages[1]!.content![0] as ToolUse)).toBe('700 ms')
  })

  it('a call that was denied has taken no time', () => {
    const denied = fold([
      user('Go', 'i1'),
      tool('start', {}, { ts_ms: 10_000 }),
      tool('update', { status: 'denied' }, { ts_ms: 90_000 }),
    ])
    expect(took(denied.messages[1]!.content![0] as ToolUse)).toBe('')
  })

  it('an answer that broke off says where, and is copied whole', () => {
    const cut = fold([
      user('Go', 'i1'),
      doing('model_loading', 'Model loading...', { data: { status: 'model_loading', model: 'gpt-5' } }),
      said('token', { text: 'Once upon a ti', phase: 'done' }),
      said('text_segment', { text: 'Once upon a ti' }),
      doing('model_loading', 'Model loading...'),
      said('token', { text: 'me.', phase: 'done' }),
      said('text_segment', { text: 'me.' }),
      said('message', { text: 'Once upon a time.', data: { from: 'coder', to: 'user', role: 'assistant' } }),
      outcome(),
    ]).messages[1]!
    expect(cut.content?.map((block) => block.type)).toEqual(['text', 'cut', 'text'])
    expect(answerOf(cut)).toBe('Once upon a time.')
    expect(cut.model).toBe('gpt-5')
  })

  it('a code block that broke off goes on as code', () => {
    const [, , rest] = grouped(
      [
        { type: 'text', text: 'So:\n```go\nfunc ma', open: false },
        { type: 'cut' },
        { type: 'text', text: 'in() {}\n```', open: false },
      ],
      [],
    )
    expect(rest).toMatchObject({ block: { text: '```go\nin() {}\n```' } })
  })
})
