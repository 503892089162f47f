import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { act, cleanup, fireEvent, render, renderHook, screen, waitFor, within } from '@testing-library/react'
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { listen } from '../shell/shortcuts'
import { FakeSocket } from '../wire/fakeSocket'
import { current, dismiss } from '../ui/toast'
import { ApprovalsPage } from './ApprovalsPage'
import { useCards } from './useCards'

vi.mock('@tanstack/react-router', () => ({
  Link: ({ children }: { children: React.ReactNode }) => <a href="/">{children}</a>,
}))

const common = { session: 's', root: 's', run: 3, owner: 'ann', agent: 'coder', asked_at: '2026-01-02T03:04:05Z' }
const edit = {
  ...common,
  id: 's.5',
  kind: 'approval',
  seq: 5,
  call: 4,
  tool: 'write_file',
  arguments: '{"path":"a.txt","content":"hi"}',
  show: 'Write 2 bytes to "a.txt", replacing it if it exists:\n\nhi',
  digest: 'd5',
}
const danger = {
  ...common,
  id: 's.9',
  kind: 'approval',
  seq: 9,
  call: 8,
  asked_at: '2026-01-02T03:04:06Z',
  tool: 'shell',
  arguments: '{}',
  show:
    'Run in the workspace, for at most 2m0s:\n\nrm -rf x\n\nThis asks because "rm" is not known.\n' +
    'Note that it deletes or overwrites files.',
  digest: 'd9',
}
const question = {
  ...common,
  id: 's.11',
  kind: 'question',
  seq: 11,
  call: 10,
  asked_at: '2026-01-02T03:04:07Z',
  tool: 'ask_user',
  arguments: '{}',
  questions: [{ question: 'Tea or coffee?', options: [{ label: 'Tea' }, { label: 'Coffee' }] }],
}
const call = {
  ...common,
  id: 's.13',
  kind: 'call',
  seq: 13,
  call: 13,
  asked_at: '2026-01-02T03:04:08Z',
  tool: 'send',
  arguments: '{"to":"bob"}',
}

interface Server {
  file?: string // content of a.txt
  approvals: unknown[]
  questions: unknown[]
  calls: unknown[]
  permissions: string[]
  posts: [string, unknown][]
  status: number
}
let server: Server

beforeEach(() => {
  server = {
    approvals: [edit, danger],
    questions: [question],
    calls: [call],
    permissions: ['agents:read', 'agents:message'],
    posts: [],
    status: 202,
  }
  vi.stubGlobal('WebSocket', FakeSocket)
  vi.stubGlobal('fetch', async (path: string, init?: RequestInit) => {
    const answer = (body: unknown, status = 200) =>
      new Response(typeof body === 'string' ? body : JSON.stringify(body), { status })
    if (init?.method === 'POST') {
      server.posts.push([path, JSON.parse(String(init.body))])
      return answer(server.status < 400 ? {} : { error: { code: 'gone', message: 'It waits no more.' } }, server.status)
    }
    if (path.startsWith('/api/v1/me'))
      return answer({
        user: 'ann',
        tenant: 't',
        roles: [],
        permissions: server.permissions,
        auth: 'local',
        version: '',
        model: '',
        demo: true,
      })
    if (path.startsWith('/api/v1/approvals')) return answer({ approvals: server.approvals })
    if (path.startsWith('/api/v1/questions')) return answer({ questions: server.questions })
    if (path.startsWith('/api/v1/calls')) return answer({ calls: server.calls })
    if (path.startsWith('/api/v1/sessions?')) return answer({ sessions: [] })
    if (path.includes('/log'))
      return answer('{"seq":10,"type":"ApprovalExplained","body":{"card":9,"text":"It deletes x."}}\n')
    if (path === '/api/files?path=') return answer(server.file === undefined ? [] : [{ name: 'a.txt', isDir: false }])
    if (path === '/api/file?path=a.txt' && server.file !== undefined) return answer({ content: server.file })
    return answer({}, 404)
  })
})

afterEach(() => {
  cleanup()
  for (const one of current()) dismiss(one.id)
  vi.unstubAllGlobals() // the socket stays: it is kept open between pages and tests
})

async function shown() {
  render(
    <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
      <ApprovalsPage />
    </QueryClientProvider>,
  )
  await screen.findByRole('button', { name: /^It was done/ })
}

const card = (name: RegExp) => screen.getByRole('article', { name })

it('shows all that waits, longest first', async () => {
  await shown()
  expect(screen.getAllByRole('article').map((one) => one.dataset.card)).toEqual(['s.5', 's.9', 's.11', 's.13'])
  expect(card(/run a command/).textContent).toContain('It deletes or overwrites files.')
})

it('approves exactly what was shown, with a note', async () => {
  await shown()
  const one = within(card(/wants to write/))
  fireEvent.change(one.getByLabelText('Note for the agent'), { target: { value: ' thanks ' } })
  server.approvals = [danger]
  fireEvent.click(one.getByRole('button', { name: /Allow once/ }))
  await waitFor(() => expect(screen.queryByRole('article', { name: /wants to write/ })).toBeNull())
  expect(server.posts).toEqual([['/api/v1/approvals/s.5', { decision: 'allow', note: 'thanks', digest: 'd5' }]])
})

it.each([
  ['Always', 'always'],
  ['Deny', 'deny'],
  ['Deny and stop', 'stop'],
])('has %s', async (name, decision) => {
  await shown()
  fireEvent.click(within(card(/run a command/)).getByRole('button', { name: new RegExp(`^${name}( |$)(?!and)`) }))
  await waitFor(() => expect(server.posts).toEqual([['/api/v1/approvals/s.9', { decision, digest: 'd9' }]]))
})

it('allows similar calls where a rule is offered', async () => {
  const rule = 'mkdir with other arguments'
  server.approvals = [{ ...danger, similar: rule }]
  await shown()
  expect(card(/run a command/).textContent).toContain(rule)
  fireEvent.click(within(card(/run a command/)).getByRole('button', { name: 'Always similar' }))
  await waitFor(() =>
    expect(server.posts).toEqual([['/api/v1/approvals/s.9', { decision: 'always', scope: 'similar', digest: 'd9' }]]),
  )
})

it('answers questions and resolves calls', async () => {
  await shown()
  const asked = within(card(/asks a question/))
  expect(asked.getByRole<HTMLButtonElement>('button', { name: 'Answer' }).disabled).toBe(true)
  fireEvent.click(asked.getByLabelText('Coffee'))
  fireEvent.click(asked.getByRole('button', { name: 'Answer' }))
  fireEvent.click(within(card(/send/)).getByRole('button', { name: 'Run it again' }))
  await waitFor(() =>
    expect(server.posts).toEqual([
      ['/api/v1/questions/s.11', { answers: [['Coffee']] }],
      ['/api/v1/calls/s.13', { resolution: 'rerun' }],
    ]),
  )
})

it('goes from card to card with j and k, with the safe answer at hand where it is dangerous', async () => {
  onTestFinished(listen(document))
  await shown()
  await waitFor(() => expect(card(/wants to write/).dataset.danger).toBeUndefined()) // the file does not exist
  const press = (key: string) => fireEvent.keyDown(document.activeElement ?? document.body, { key })
  press('j')
  expect(document.activeElement).toBe(card(/wants to write/))
  press('j')
  expect(document.activeElement?.textContent).toMatch(/^Deny/)
  press('k')
  press('k')
  expect(document.activeElement).toBe(card(/wants to write/))
  press('Enter')
  await waitFor(() => expect(server.posts).toEqual([['/api/v1/approvals/s.5', { decision: 'allow', digest: 'd5' }]]))
})

it('says what writing a file does away with, and has no at hand', async () => {
  server.file = 'one\ntwo\nthree\n'
  await shown()
  await within(card(/wants to write/)).findByText('It replaces all of a.txt, which has 3 lines now.')
  expect(card(/wants to write/).dataset.danger).toBe('true')
  card(/wants to write/).focus()
  fireEvent.keyDown(card(/wants to write/), { key: 'Enter' })
  expect(server.posts).toEqual([])
})

it('denies with Backspace, but not while something is typed', async () => {
  await shown()
  fireEvent.keyDown(within(card(/run a command/)).getByLabelText('Note for the agent'), { key: 'Backspace' })
  expect(server.posts).toEqual([])
  card(/run a command/).focus()
  fireEvent.keyDown(card(/run a command/), { key: 'Enter' })
  expect(server.posts).toEqual([])
  fireEvent.keyDown(card(/run a command/), { key: 'Backspace' })
  await waitFor(() => expect(server.posts).toEqual([['/api/v1/approvals/s.9', { decision: 'deny', digest: 'd9' }]]))
})

it('lets go of a card that was answered elsewhere, and says so', async () => {
  await shown()
  server.approvals = [edit]
  act(() => {
    FakeSocket.last.open()
    FakeSocket.last.say({ id: 'x', seq: 8, kind: 'widget_resolved', data: { widget_id: 's.9', resolution: 'deny' } })
  })
  await waitFor(() => expect(screen.queryByRole('article', { name: /run a command/ })).toBeNull())
  expect(current().map((one) => one.text)).toEqual(['The request of coder was answered elsewhere: deny.'])
})

it('says that an answer came too late', async () => {
  await shown()
  server.status = 410
  server.approvals = [danger]
  fireEvent.click(within(card(/wants to write/)).getByRole('button', { name: /Allow once/ }))
  await waitFor(() => expect(screen.queryByRole('article', { name: /wants to write/ })).toBeNull())
  expect(current()[0]?.text).toMatch(/answered elsewhere/)
})

it('keeps the card of an answer that failed', async () => {
  await shown()
  server.status = 409
  fireEvent.click(within(card(/wants to write/)).getByRole('button', { name: /Allow once/ }))
  await screen.findByText('Your answer was not accepted.')
  expect(card(/wants to write/)).toBeTruthy()
})

it('explains', async () => {
  await shown()
  fireEvent.click(within(card(/run a command/)).getByRole('button', { name: 'Explain' }))
  await screen.findByText('It deletes x.')
  expect(server.posts).toEqual([]) // it was explained before
})

it('knows that there may be more than it was given', async () => {
  const hook = () => {
    const client = new QueryClient()
    return renderHook(useCards, {
      wrapper: ({ children }: { children: React.ReactNode }) => (
        <QueryClientProvider client={client}>{children}</QueryClientProvider>
      ),
    })
  }
  server.calls = Array.from({ length: 199 }, (_, i) => ({ ...call, id: `t.${i}` }))
  const few = hook()
  await waitFor(() => expect(few.result.current.cards).toHaveLength(202))
  expect(few.result.current.more).toBe(false)
  server.calls.push(call)
  const many = hook()
  await waitFor(() => expect(many.result.current.more).toBe(true))
})

it('offers nothing to who may only look', async () => {
  server.permissions = ['agents:read']
  render(
    <QueryClientProvider client={new QueryClient()}>
      <ApprovalsPage />
    </QueryClientProvider>,
  )
  await screen.findByRole('article', { name: /run a command/ })
  expect(screen.queryByRole('button', { name: /Allow|Deny|Answer|done/ })).toBeNull()
  expect(screen.getAllByText(/needs agents:message/)).toHaveLength(4)
})
