import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, render } from '@testing-library/react'
import type { ReactElement, ReactNode } from 'react'
import { afterEach, beforeEach, vi } from 'vitest'
import { agentMessage } from '../model/chatReducer'
import type { ChatMessage, ToolUse } from '../model/message'
import { ChatProvider, type ChatContext } from './chatContext'

// For tests of the view: a scripted server, and messages to show.

export const session = '550e8400-e29b-41d4-a716-446655440000'

interface Asked {
  method: string
  path: string
  body: unknown
  once: string | null
}

export const server: { asked: Asked[]; may: string[]; answer: (asked: Asked) => Response } = {
  asked: [],
  may: [],
  answer: () => new Response(),
}

const agents = ['coder', 'explorer'].map((id) => ({ id, name: id, description: '', status: 'running' }))
const skills = [{ name: 'review', description: 'reviews', user_invocable: true, model_invocable: false }]

// useServer gives each test of a file its own server.
export function useServer(): void {
  beforeEach(() => {
    server.asked = []
    server.may = ['agents:read', 'agents:message']
    server.answer = () => new Response('{"status":"ok","session_id":"s"}')
    localStorage.clear()
    vi.stubGlobal('fetch', async (path: string, init: RequestInit = {}) => {
      if (path === '/api/v1/agents') return new Response(JSON.stringify({ agents }))
      if (path === '/api/v1/skills') return new Response(JSON.stringify({ skills }))
      if (path === '/api/v1/me') return new Response(JSON.stringify({ permissions: server.may, model: 'gpt-5' }))
      const one = {
        method: init.method ?? 'GET',
        path,
        body: init.body === undefined ? undefined : (JSON.parse(String(init.body)) as unknown),
        once: new Headers(init.headers).get('Idempotency-Key'),
      }
      server.asked.push(one)
      return server.answer(one)
    })
  })
  afterEach(() => {
    cleanup()
    vi.unstubAllGlobals()
  })
}

export function show(element: ReactElement, over: Partial<ChatContext> = {}) {
  const context: ChatContext = { session, mayMessage: true, cards: [], asked: new Set(), undone: {}, working: false, ...over }
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={new QueryClient()}>
      <ChatProvider value={context}>{children}</ChatProvider>
    </QueryClientProvider>
  )
  return render(element, { wrapper })
}

export function message(over: Partial<ChatMessage>): ChatMessage {
  return { ...agentMessage(session, 'm', 'coder', 1000), ...over }
}

export function tool(over: Partial<ToolUse>): ToolUse {
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
