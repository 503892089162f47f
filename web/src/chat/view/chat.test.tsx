import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { act, cleanup, fireEvent, render, renderHook, screen, waitFor } from '@testing-library/react'
import type { ReactElement, ReactNode } from 'react'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { FakeSocket } from '../../wire/fakeSocket'
import { AgentMessage } from './AgentMessage'
import { approvalOf } from '../model/approval'
import { AskUserCard } from './AskUserCard'
import { ChatProvider, type ChatContext } from './chatContext'
import { agentMessage } from '../model/chatReducer'
import { commands, meaning, suggest } from '../model/commands'
import { Composer } from './Composer'
import { describe as describeTool, dollars, summarize, tokens } from '../model/describe'
import { writeDraft } from '../model/draft'
import { choose, maxBytes } from '../model/images'
import type { Card, ChatMessage, ToolUse } from '../model/message'
import { MessageBody } from './MessageBody'
import { MessageBoundary } from './MessageBoundary'
import { PlanBlock } from './PlanBlock'
import { QueuedMessages } from './QueuedMessages'
import { useChatMessages } from './useChatMessages'

const session = '550e8400-e29b-41d4-a716-446655440000'

interface Asked {
  method: string
  path: string
  body: unknown
  once: string | null
}
let asked: Asked[] = []
let answer: (asked: Asked) => Response

beforeEach(() => {
  asked = []
  answer = () => new Response('{"status":"ok","session_id":"s"}')
  localStorage.clear()
  vi.stubGlobal('fetch', (path: string, init: RequestInit = {}) => {
    const one = {
      method: init.method ?? 'GET',
      path,
      body: init.body === undefined ? undefined : (JSON.parse(String(init.body)) as unknown),
      once: new Headers(init.headers).get('Idempotency-Key'),
    }
    if (path === '/api/v1/agents')
      return Promise.resolve(
        new Response(
          '{"agents":[{"id":"coder","name":"coder","description":"codes","status":"running"},{"id":"explorer","name":"explorer","description":"looks","status":"running"}]}',
        ),
      )
    if (path === '/api/v1/skills')
      return Promise.resolve(
        new Response('{"skills":[{"name":"review","description":"reviews","user_invocable":true}]}'),
      )
    asked.push(one)
    return Promise.resolve(answer(one))
  })
})
afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

function show(element: ReactElement, over: Partial<ChatContext> = {}) {
  const context: ChatContext = { session, mayMessage: true, cards: [], asked: new Set(), ...over }
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={new QueryClient()}>
      <ChatProvider value={context}>{children}</ChatProvider>
    </QueryClientProvider>
  )
  return render(element, { wrapper })
}

function message(over: Partial<ChatMessage>): ChatMessage {
  return { ...agentMessage(session, 'm', 'coder', 1000), ...over }
}

function tool(over: Partial<ToolUse>): ToolUse {
  return {
    type: 'tool_use',
    id: 't',
    tool: 'shell',
    args: { command: ['go', 'test'] },
    status: 'running',
    summary: '',
    output: '',
    cut: 0,
    startedMs: 1000,
    turn: 1,
    ...over,
  }
}

describe('AgentMessage', () => {
  it('says what goes on in every phase', () => {
    const { rerender } = show(<AgentMessage message={message({ isThinking: true })} />)
    expect(screen.getByRole('status').textContent).toContain('Thinking')
    rerender(
      <AgentMessage
        message={message({ turns: [1], activitySummary: 'Running go test', content: [tool({ output: 'ok\n' })] })}
      />,
    )
    expect(screen.getByText('Run')).toBeTruthy()
    expect(screen.getByLabelText('Live output').textContent).toContain('ok')
    rerender(<AgentMessage message={message({ turns: [1], content: [{ type: 'text', text: 'Half', open: true }] })} />)
    expect(screen.getByRole('article').dataset.phase).toBe('streaming')
    rerender(
      <AgentMessage
        message={message({
          isGenerating: false,
          outcome: 'failed',
          content: [{ type: 'notice', text: 'The key is wrong.' }],
        })}
      />,
    )
    expect(screen.getByText('failed')).toBeTruthy()
    expect(screen.getByText('The key is wrong.')).toBeTruthy()
  })

  it('folds what was done to a line that tells enough', () => {
    show(
      <AgentMessage
        message={message({
          isGenerating: false,
          turns: [1],
          content: [
            tool({ id: 'a', status: 'done', endedMs: 1400 }),
            tool({ id: 'b', tool: 'read_file', args: { path: 'x/main.go' }, status: 'failed', endedMs: 1500 }),
          ],
        })}
      />,
    )
    const line = screen.getByRole('button', { name: /Ran 2 tools/ })
    expect(line.textContent).toContain('go test')
    expect(line.textContent).toContain('main.go')
    expect(line.textContent).toContain('failed')
    expect(line.getAttribute('aria-expanded')).toBe('false')
    fireEvent.click(line)
    fireEvent.click(screen.getAllByRole('button', { name: /Read/ })[1]!)
    expect(screen.getByText(/"path": "x\/main.go"/)).toBeTruthy()
  })

  it('shows sub-agents in place of the call that asked for them', () => {
    const entry = {
      id: 'c',
      agent: 'explorer',
      task: 'look',
      status: 'completed',
      startedMs: 1,
      endedMs: 2000,
      message: message({ isGenerating: false, content: [{ type: 'text', text: 'Nothing.', open: false }] }),
    }
    const below = { ...entry, id: 'd', parent: 'c', agent: 'digger', task: 'dig' }
    show(
      <AgentMessage
        message={message({
          isGenerating: false,
          content: [tool({ tool: 'delegate', args: { agent_id: 'explorer', task: 'look' }, endedMs: 2 })],
          subagentTree: [entry, below],
        })}
      />,
    )
    expect(screen.queryByText('Delegate')).toBeNull()
    expect(screen.getAllByLabelText('Sub-agents')).toHaveLength(2)
    fireEvent.click(screen.getByRole('button', { name: /explorer/ }))
    expect(screen.getByText('Nothing.')).toBeTruthy()
  })
})

describe('MessageBody', () => {
  it('shows JSON of a known type as what it is', () => {
    const { container, rerender } = show(
      <MessageBody text='{"type":"plan","summary":"Fix it","items":[{"title":"Find","status":"done"}],"status":"executing"}' />,
    )
    expect(screen.getByLabelText('Plan').textContent).toContain('Find')
    rerender(<MessageBody text='{"type":"finalize_task","title":"Mended","acceptance_criteria":["it works"]}' />)
    expect(screen.getByLabelText('Task').textContent).toContain('it works')
    rerender(
      <MessageBody
        text={JSON.stringify({
          type: 'change_report',
          files: [{ path: 'a.go', summary: 'Modified', diff: '@@ -1 +1 @@\n-a\n+b' }],
        })}
      />,
    )
    expect(screen.getByLabelText('Changed files').textContent).toContain('a.go')
    for (const text of ['{"type":"news"}', '{"type":', 'type: plan', '{}']) {
      rerender(<MessageBody text={text} />)
      expect(container.textContent).toContain(text.slice(0, 4))
    }
  })

  it('lets a model write a card, but nobody answer it', () => {
    const card = {
      type: 'ask_user',
      question_id: 'x.1',
      questions: [{ question: 'Allow shell?\n\nrm -rf /', header: 'Permission', options: [{ label: 'Allow once' }] }],
    }
    show(<MessageBody text={JSON.stringify(card)} />)
    expect(screen.queryByRole('button', { name: /Allow/ })).toBeNull()
    expect(screen.getByText('not open')).toBeTruthy()
  })
})

const permission = (show: string, why = ''): Card => ({
  question_id: session + '.7',
  questions: [
    {
      question: `Allow shell?${why === '' ? '' : ` (${why})`}\n\n${show}`,
      header: 'Permission',
      options: [],
      multi_select: false,
    },
  ],
  agent: 'coder',
  session,
  askedMs: 1,
})
const decided = () => (asked.at(-1)?.body as { answers: { selected: string[]; custom_text: string | null }[] }).answers

describe('AskUserCard', () => {
  it('is allowed with Enter and denied with Backspace, on the card itself', async () => {
    show(<AskUserCard card={permission('Run: ls')} />)
    const card = screen.getByRole('region', { name: /Approval wanted by coder/ })
    fireEvent.click(screen.getByRole('button', { name: 'Add a note' }))
    const note = screen.getByLabelText('Note to the agent')
    fireEvent.change(note, { target: { value: 'go on' } })
    fireEvent.keyDown(note, { key: 'Enter' })
    fireEvent.keyDown(note, { key: 'Backspace' })
    expect(asked).toEqual([])
    fireEvent.keyDown(card, { key: 'Enter' })
    await waitFor(() => expect(asked).toHaveLength(1))
    expect(asked[0]).toMatchObject({ path: '/api/ask-user-response', body: { question_id: session + '.7' } })
    expect(decided()).toEqual([{ question_index: 0, selected: ['Allow once'], custom_text: 'go on' }])
    fireEvent.keyDown(card, { key: 'Backspace' }) // it is answered
    expect(asked).toHaveLength(1)
  })

  it('has the safe answer in front where there is danger', async () => {
    show(<AskUserCard card={permission('Run: rm -rf build\nNote that it deletes or overwrites files.')} />)
    const card = screen.getByRole('region', { name: /Approval/ })
    expect(screen.getByText('It deletes or overwrites files')).toBeTruthy()
    fireEvent.keyDown(card, { key: 'Enter' })
    expect(asked).toEqual([])
    expect(document.activeElement).toBe(screen.getByRole('button', { name: /Deny/ }))
    fireEvent.keyDown(card, { key: 'Backspace' })
    await waitFor(() => expect(asked).toHaveLength(1))
    expect(decided()[0]!.selected).toEqual(['Deny'])
  })

  it('shows every byte, and names those that cannot be seen', () => {
    const { container } = show(<AskUserCard card={permission('echo \u202egnp.sh ' + 'x'.repeat(5000))} />)
    expect(container.querySelector('mark[data-trick=bidi]')).not.toBeNull()
    expect(screen.getByText(/change the direction of text/)).toBeTruthy()
    expect(screen.getByText(/more characters are not shown/)).toBeTruthy()
    fireEvent.click(screen.getByRole('button', { name: 'Show all of it' }))
    expect(container.textContent).toContain('x'.repeat(5000))
  })

  it('says when it was answered elsewhere, and offers again what failed', async () => {
    answer = () => new Response('{"error":"answered"}', { status: 410 })
    show(<AskUserCard card={permission('Run: ls')} />)
    fireEvent.click(screen.getByRole('button', { name: /Allow once/ }))
    await screen.findByText(/answered elsewhere/)
    expect(screen.queryByRole('button', { name: 'Try again' })).toBeNull()
    answer = () => new Response('{"error":"busy"}', { status: 503 })
    fireEvent.click(screen.getByRole('button', { name: /Deny/ }))
    fireEvent.click(await screen.findByRole('button', { name: 'Try again' }))
    await waitFor(() => expect(asked).toHaveLength(3))
    expect(decided()[0]!.selected).toEqual(['Deny'])
  })

  it('is only looked at by who may not decide', () => {
    show(<AskUserCard card={permission('Run: ls')} />, { mayMessage: false })
    expect(screen.queryByRole('button', { name: /Allow once|Deny|Always/ })).toBeNull()
    expect(screen.getByText(/may look, but not decide/)).toBeTruthy()
  })

  it('asks all questions of a card', async () => {
    const options = (...labels: string[]) => labels.map((label) => ({ label, description: null, preview: null }))
    const card = {
      ...permission(''),
      questions: [
        {
          question: 'Which database?',
          header: 'Database',
          options: options('SQLite', 'PostgreSQL'),
          multi_select: false,
        },
        { question: 'Which extras?', header: 'Extras', options: options('Search', 'Audit'), multi_select: true },
      ],
    }
    show(<AskUserCard card={card} />)
    const send = screen.getByRole('button', { name: 'Answer all' }) as HTMLButtonElement
    fireEvent.click(screen.getByLabelText('SQLite'))
    fireEvent.click(screen.getByLabelText('PostgreSQL'))
    expect(send.disabled).toBe(true)
    fireEvent.click(screen.getByLabelText('Search'))
    fireEvent.click(screen.getByLabelText('Audit'))
    fireEvent.click(send)
    await waitFor(() => expect(asked).toHaveLength(1))
    expect(decided().map((d) => d.selected)).toEqual([['PostgreSQL'], ['Search', 'Audit']])
  })

  it('takes an approval apart without losing anything', () => {
    const { show: exact, why, risks } = approvalOf(permission('a\n\nb', 'a message was flagged').questions[0]!)
    expect([exact, why, risks]).toEqual(['a\n\nb', 'a message was flagged', ['a message was flagged']])
  })
})

describe('PlanBlock', () => {
  it('is decided where it waits', async () => {
    show(
      <PlanBlock plan={{ summary: '', status: 'planned', items: [{ title: 'Find', status: 'pending' }] }} deciding />,
    )
    fireEvent.click(screen.getByRole('button', { name: 'Approve and carry out' }))
    await waitFor(() => expect(asked).toHaveLength(1))
    expect(asked[0]).toMatchObject({ path: '/api/plan/approve', body: { session_id: session } })
  })
})

describe('QueuedMessages', () => {
  it('are taken back', async () => {
    show(<QueuedMessages messages={[{ ...message({ role: 'user', text: 'never mind' }), inputId: session + '.8' }]} />)
    fireEvent.click(screen.getByRole('button', { name: /Take back/ }))
    await waitFor(() => expect(asked).toHaveLength(1))
    expect(asked[0]).toMatchObject({ method: 'DELETE', path: `/api/v1/inputs/${session}.8` })
  })
})

describe('Composer', () => {
  const area = () => screen.getByRole('textbox') as HTMLTextAreaElement
  const type = (text: string) => fireEvent.change(area(), { target: { value: text } })
  const press = (key: string, over = {}) => fireEvent.keyDown(area(), { key, ...over })

  it('keeps what was typed until the server has it, and sends it once', async () => {
    answer = () => new Response('{"error":"The disk is full."}', { status: 503 })
    const sent = vi.fn()
    show(<Composer session={session} agent="coder" onSent={sent} />)
    type('hello')
    press('Enter', { shiftKey: true })
    expect(asked).toEqual([])
    press('Enter')
    await screen.findByText('The disk is full.')
    expect(area().value).toBe('hello')
    answer = () => new Response('{"status":"started","session_id":"s"}')
    fireEvent.click(screen.getByRole('button', { name: 'Try again' }))
    await waitFor(() => expect(sent).toHaveBeenCalledOnce())
    expect(asked[1]).toMatchObject({
      path: '/api/chat',
      body: { message: 'hello', session_id: session, agent_id: 'coder' },
    })
    expect(asked[1]!.once).toBe(asked[0]!.once)
    expect(area().value).toBe('')
    type('hello')
    press('Enter')
    await waitFor(() => expect(asked).toHaveLength(3))
    expect(asked[2]!.once).not.toBe(asked[1]!.once) // said again on purpose
  })

  it('keeps drafts over a reload, each session its own', () => {
    writeDraft('other', { text: 'not this' })
    show(<Composer session={session} onSent={() => {}} />)
    type('half a')
    cleanup()
    show(<Composer session={session} onSent={() => {}} />)
    expect(area().value).toBe('half a')
  })

  it('goes back in what was said', () => {
    show(<Composer session={session} said={['one', 'two']} onSent={() => {}} />)
    press('ArrowUp')
    expect(area().value).toBe('two')
    press('ArrowUp')
    expect(area().value).toBe('one')
    press('ArrowDown')
    press('ArrowDown')
    expect(area().value).toBe('')
    type('mine')
    press('ArrowUp')
    expect(area().value).toBe('mine')
  })

  it('suggests commands, skills and agents', async () => {
    show(<Composer session={session} onSent={() => {}} onClear={() => {}} />)
    await screen.findByRole('button', { name: /Agent: coder/ })
    type('/re')
    expect((await screen.findAllByRole('option')).map((o) => o.textContent)).toEqual(['/reviewreviews'])
    press('Tab')
    expect(area().value).toBe('/review ')
    type('@')
    expect(screen.getAllByRole('option')).toHaveLength(2)
    press('ArrowDown')
    press('Enter')
    expect(area().value).toBe('@explorer ')
    expect(asked).toEqual([])
  })

  it('offers to stop while a run goes, and to steer once something is typed', () => {
    show(<Composer session={session} running onStop={() => Promise.resolve()} onSent={() => {}} />)
    expect(screen.getByRole('button', { name: /Stop/ })).toBeTruthy()
    expect(screen.queryByRole('button', { name: /Send|Steer/ })).toBeNull()
    type('also this')
    expect(screen.getByRole('button', { name: /Steer/ })).toBeTruthy()
  })

  it('knows what is meant', () => {
    expect(meaning(' /plan  fix it ')).toEqual({ do: 'say', message: 'fix it', mode: 'plan' })
    expect(meaning('/clear')).toEqual({ do: 'clear' })
    expect(meaning('/tour')).toEqual({ do: 'say', message: '/tour' })
    expect(suggest('say /', [], [])).toEqual([])
    expect(
      commands([{ name: 'plan', description: '', user_invocable: true, model_invocable: false }]).filter(
        (c) => c.name === '/plan',
      ),
    ).toHaveLength(1)
  })

  it('takes images the server takes', async () => {
    const file = (name: string, type: string, size = 10) => new File([new Uint8Array(size)], name, { type })
    const { pictures, problems } = await choose(
      [],
      [
        file('a.png', 'image/png'),
        file('b.txt', 'text/plain'),
        file('c.jpg', 'image/jpeg', maxBytes),
        ...['d', 'e', 'f', 'g'].map((n) => file(n + '.webp', 'image/webp')),
      ],
    )
    expect(pictures.map((p) => p.name)).toEqual(['a.png', 'd.webp', 'e.webp', 'f.webp'])
    expect(problems).toHaveLength(3)
    expect(pictures[0]!.url).toMatch(/^data:image\/png;base64,/)
  })
})

describe('useChatMessages', () => {
  it('draws once per picture, however much comes', async () => {
    FakeSocket.made = []
    vi.stubGlobal('WebSocket', FakeSocket)
    let paint: (() => void)[] = []
    vi.stubGlobal('requestAnimationFrame', (f: () => void) => paint.push(f))
    vi.stubGlobal('cancelAnimationFrame', () => {})
    answer = () => new Response('{"messages":[],"cursor":"e-7","earlier":null}')
    let drawn = 0
    const { result } = renderHook(() => {
      drawn++
      return useChatMessages(session)
    })
    await waitFor(() => expect(FakeSocket.made).toHaveLength(1))
    act(() => FakeSocket.last.open())
    const before = drawn
    const send = (seq: number, over: object) =>
      FakeSocket.last.say({ id: 'x' + seq, seq, ts_ms: 1, session_id: session, agent_id: 'coder', ...over })
    act(() => {
      send(8, { kind: 'message', text: 'Hi', data: { from: 'user', to: 'coder', role: 'user', input_id: 's.2' } })
      for (let seq = 16; seq < 816; seq += 8) send(seq, { kind: 'token', text: 'x' })
      send(16, { kind: 'token', text: 'again' })
    })
    expect(drawn).toBe(before)
    act(() => {
      const now = paint
      paint = []
      now.forEach((f) => f())
    })
    expect(drawn).toBe(before + 1)
    expect(result.current.state.messages.map((m) => m.text)).toEqual(['Hi', 'x'.repeat(100)])
  })
})

describe('what cannot be drawn', () => {
  it('is kept to itself', () => {
    const error = vi.spyOn(console, 'error').mockImplementation(() => {})
    vi.spyOn(console, 'warn').mockImplementation(() => {})
    const Broken = () => {
      throw new Error('no')
    }
    show(
      <MessageBoundary raw={{ text: 'its text' }}>
        <Broken />
      </MessageBoundary>,
    )
    expect(screen.getByText(/cannot be shown/)).toBeTruthy()
    expect(screen.getByText(/its text/)).toBeTruthy()
    error.mockRestore()
  })
})

describe('words for people', () => {
  it('say what tools do', () => {
    expect(describeTool({ tool: 'shell', args: { command: ['bash', '-lc', 'go  test ./...'] } })).toEqual({
      verb: 'Run',
      object: 'go test ./...',
    })
    expect(describeTool({ tool: 'shell', args: { command: ['rm', "it's"] } }).object).toBe(`rm 'it'\\''s'`)
    expect(
      describeTool({
        tool: 'apply_patch',
        args: { patch: '*** Begin Patch\n*** Update File: a.go\n*** Add File: b.go\n' },
      }).object,
    ).toBe('a.go, b.go')
    expect(describeTool({ tool: 'x__y', args: 'no json' })).toEqual({ verb: 'x__y', object: '' })
    expect(summarize([1, 2, 3].map((n) => tool({ tool: 'read_file', args: { path: `d/${n}.go` } })))).toBe(
      'Read 1.go and 2 more',
    )
  })
  it('never round something to nothing', () => {
    expect([dollars(0), dollars(10), dollars(1500), dollars(40_000)]).toEqual(['$0', '< $0.0001', '$0.0015', '$0.04'])
    expect([tokens(999), tokens(12_300), tokens(200_000), tokens(1_000_000)]).toEqual(['999', '12.3k', '200k', '1M'])
  })
})
