// Requests of the chat, besides messages.

import { useQuery } from '@tanstack/react-query'
import { ask } from '../../wire/api'
import type { Agent, Run, Session, Settings, Skill } from '../../wire/native.generated'

export const runsKey = (session: string) => ['runs', 'of', session]
export const sessionKey = (session: string) => ['session', session]

export function useAgents() {
  return useQuery({
    queryKey: ['agents'],
    queryFn: ({ signal }) => ask<{ agents: Agent[] }>('GET', '/api/v1/agents', { signal }),
    staleTime: 30_000,
    select: (answer) => answer.agents ?? [],
  })
}

export function useSkills() {
  return useQuery({
    queryKey: ['skills'],
    queryFn: ({ signal }) => ask<{ skills: Skill[] }>('GET', '/api/v1/skills', { signal }),
    staleTime: 60_000,
    select: (answer) => (answer.skills ?? []).filter((skill) => skill.user_invocable),
  })
}

export function useSession(session: string) {
  return useQuery({
    queryKey: sessionKey(session),
    queryFn: ({ signal }) => ask<Session>('GET', `/api/v1/sessions/${session}`, { signal }),
  })
}

export function useRuns(session: string, enabled: boolean) {
  return useQuery({
    queryKey: runsKey(session),
    queryFn: ({ signal }) => ask<{ runs: Run[] }>('GET', `/api/v1/runs?session=${session}&limit=200`, { signal }),
    select: (answer) => answer.runs ?? [],
    enabled,
  })
}

export function useSettings(enabled: boolean) {
  return useQuery({
    queryKey: ['settings'],
    queryFn: ({ signal }) => ask<Settings>('GET', '/api/v1/settings', { signal }),
    enabled,
    staleTime: 30_000,
  })
}
