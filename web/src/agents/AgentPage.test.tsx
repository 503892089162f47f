import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { FakeSocket } from '../wire/fakeSocket'
import { AgentPage } from './AgentPage'

vi.mock('@tanstack/react-router', () => ({
  Link: ({ children }: { children: React.ReactNode }) => <a href="/">{children}</a>,
  useParams: () => ({ id: 'coder' }),
  useNavigate: () => () => {},
  useRouterState: () => ({}),
}))

let agent: Record<string, unknown>
let permissions: string[]
let posts: string[]

beforeEach(() => {
  agent = {
    id: 'coder',
    name: 'coder',
    description: 'writes code',
    status: 'running',
    definition: { name: 'coder', tools: ['read_file'], instructions: 'Be brief.', limits: { turns: 7 } },
  }
  permissions = ['agents:read', 'agents:message', 'agents:write']
  posts = []
  FakeSocket.made = []
  vi.stubGlobal('WebSocket', FakeSocket)
  vi.stubGlobal('fetch', async (path: string, init?: RequestInit) => {
    const answer = (body: unknown, status = 200) => new Response(JSON.stringify(body), { status })
    if (init?.method === 'POST') {
      posts.push(path)
      agent = { ...agent, status: path.endsWith('/stop') ? 'stopped' : 'running' }
      return answer(agent)
    }
    if (path === '/api/v1/me')
      return answer({
        user: 'ann',
        tenant: 't',
        roles: [],
        permissions,
        auth: 'local',
        version: '',
        model: '',
        demo: true,
      })
    if (path === '/api/v1/agents/coder') return answer(agent)
    if (path.startsWith('/api/v1/runs')) return answer({ runs: [] })
    if (path.startsWith('/api/v1/sessions')) return answer({ sessions: [] })
    return answer({}, 404)
  })
})

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

async function shown() {
  render(
    <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
      <AgentPage />
    </QueryClientProvider>,
  )
  await screen.findByText('7 turns')
}

const consoles = () => FakeSocket.made.filter((socket) => socket.url.includes('/agents/coder/ws'))

it('has the console of an agent that runs, and its definition', async () => {
  await shown()
  await screen.findByRole('log')
  await waitFor(() => expect(consoles()).toHaveLength(1))
  expect(screen.getByText('Be brief.')).toBeTruthy()
  expect(screen.getByText('read_file')).toBeTruthy()
})

it('says why there is no console for an agent that does not run', async () => {
  agent.status = 'unreachable'
  await shown()
  await screen.findByText('This agent cannot be reached')
  expect(screen.queryByRole('log')).toBeNull()
  expect(consoles()).toHaveLength(0)
})

it('closes the console when the agent is stopped', async () => {
  await shown()
  await screen.findByRole('log')
  await waitFor(() => expect(consoles()).toHaveLength(1))
  fireEvent.click(screen.getByRole('button', { name: 'Stop' }))
  await screen.findByText('This agent is stopped')
  expect(posts).toEqual(['/api/v1/agents/coder/stop'])
  expect(consoles()[0]!.closed).toBe(1000)
  fireEvent.click(screen.getByRole('button', { name: 'Start' }))
  await screen.findByRole('log')
})

it('has no console and no buttons for read-only users', async () => {
  permissions = ['agents:read']
  await shown()
  expect(screen.queryByRole('region', { name: 'Debug console' })).toBeNull()
  expect(screen.queryByRole('button', { name: 'Stop' })).toBeNull()
  expect(consoles()).toHaveLength(0)
})

it('shows the error in the file of the agent', async () => {
  agent.problem = 'agents/coder.md:3: unknown key tolls'
  await shown()
  expect(screen.getByRole('alert').textContent).toContain('agents/coder.md:3: unknown key tolls')
})
