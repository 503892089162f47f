// What the chat asks the server for besides messages.

import { useQuery } from '@tanstack/react-query'
import { ask } from '../wire/api'

export interface AgentInfo {
  id: string
  name: string
  description: string
  model?: string
  status: string
}

export interface SessionInfo {
  id: string
  title: string
  agent?: string
  status: string
}

export interface SkillInfo {
  name: string
  description: string
  argument_hint?: string
  user_invocable: boolean
}

export interface RunInfo {
  id: string
  session: string
  run: number
  agent: string
  outcome?: string
  waiting?: boolean
  usage?: { input?: number; output?: number; cached?: number; cost_micros?: number }
  started_at: string
  ended_at?: string
}

export const runsKey = (session: string) => ['runs', 'of', session]
export const sessionKey = (session: string) => ['session', session]

export function useAgents() {
  return useQuery({
    queryKey: ['agents'],
    queryFn: ({ signal }) => ask<{ agents: AgentInfo[] }>('GET', '/api/v1/agents', { signal }),
    staleTime: 30_000,
    select: (answer) => answer.agents ?? [],
  })
}

export function useSkills() {
  return useQuery({
    queryKey: ['skills'],
    queryFn: ({ signal }) => ask<{ skills: SkillInfo[] }>('GET', '/api/v1/skills', { signal }),
    staleTime: 60_000,
    select: (answer) => (answer.skills ?? []).filter((skill) => skill.user_invocable),
  })
}

export function useSession(session: string) {
  return useQuery({
    queryKey: sessionKey(session),
    queryFn: ({ signal }) => ask<SessionInfo>('GET', `/api/v1/sessions/${session}`, { signal }),
  })
}

export function useRuns(session: string, enabled: boolean) {
  return useQuery({
    queryKey: runsKey(session),
    queryFn: ({ signal }) => ask<{ runs: RunInfo[] }>('GET', `/api/v1/runs?session=${session}&limit=200`, { signal }),
    select: (answer) => answer.runs ?? [],
    enabled,
  })
}

export function useSettings(enabled: boolean) {
  return useQuery({
    queryKey: ['settings'],
    queryFn: ({ signal }) => ask<{ model?: string }>('GET', '/api/v1/settings', { signal }),
    enabled,
    staleTime: 30_000,
  })
}
