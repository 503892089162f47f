import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, render, screen } from '@testing-library/react'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Mission } from './Mission'

const note = 'No agent is prompted to work on a mission: this server was started without AUTONOMY_ENABLED=true.'
let mission: Record<string, unknown>
let permissions: string[]

beforeEach(() => {
  permissions = ['agents:read', 'agents:write']
  vi.stubGlobal('fetch', async (path: string) => {
    const answer = (body: unknown, status = 200) => new Response(JSON.stringify(body), { status })
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
    if (path === '/api/mission') return answer(mission)
    if (path === '/api/missions') return answer({ missions: [] })
    if (path === '/api/v1/agents') return answer({ agents: [] })
    return answer({}, 404)
  })
})

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

const show = () =>
  render(
    <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
      <Mission />
    </QueryClientProvider>,
  )

it('says that nobody is prompted before a mission is set', async () => {
  mission = { active: false, note }
  show()
  await screen.findByRole('button', { name: 'Set the mission' })
  expect(screen.getByRole('note').textContent).toBe(note)
})

it('says that nobody is prompted while a mission is active', async () => {
  mission = { active: true, text: 'Keep it green.', created_at: 1767323045, agents: [], note }
  show()
  await screen.findByText('Keep it green.')
  expect(screen.getByRole('note').textContent).toBe(note)
})

it('says it to people who may only read', async () => {
  permissions = ['agents:read']
  mission = { active: false, note }
  show()
  await screen.findByText('No mission is set.')
  expect(screen.getByRole('note').textContent).toBe(note)
})

it('says nothing where agents are prompted', async () => {
  mission = { active: true, text: 'Keep it green.', created_at: 1767323045, agents: [] }
  show()
  await screen.findByText('Keep it green.')
  expect(screen.queryByRole('note')).toBeNull()
})
