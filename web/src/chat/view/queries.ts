// Requests of the chat, except messages.

import { queryOptions, useQuery } from '@tanstack/react-query'
import { agentsIn } from '../../agents/queries'
import { ofProject, projectsQuery } from '../../files/queries'
import { ask } from '../../wire/api'
import type { Model, Run, Session, Settings, Skill } from '../../wire/native.generated'

export const runsKey = (session: string) => ['runs', 'of', session]
export const sessionKey = (session: string) => ['session', session]

// useKnown returns the project of a conversation if this server has it, else '', the first project. Projects can be
// removed, and servers that share a database can have different ones.
function useKnown(project: string): string {
  const { data = [] } = useQuery({ ...projectsQuery, enabled: project !== '' })
  return data.some(({ root }) => root === project) ? project : ''
}

// Each project has its own agents and skills; no project: the first.
export function useAgents(project = '') {
  return useQuery({ ...agentsIn(useKnown(project)), staleTime: 30_000, select: (answer) => answer.agents })
}

export const skillsIn = (project: string) =>
  queryOptions({
    queryKey: ['skills', project],
    queryFn: ({ signal }) =>
      ask<{ skills: Skill[]; problems: string[] }>('GET', `/api/v1/skills${ofProject(project)}`, { signal }),
  })

// useSkills lists the skills that people can use.
export function useSkills(project = '') {
  return useQuery({
    ...skillsIn(useKnown(project)),
    staleTime: 60_000,
    select: (answer) => answer.skills.filter((skill) => skill.user_invocable),
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

// useModels lists the models that can be called.
export function useModels(enabled: boolean) {
  return useQuery({
    queryKey: ['models'],
    queryFn: ({ signal }) => ask<Model[]>('GET', '/api/v1/models', { signal }),
    staleTime: 300_000,
    enabled,
  })
}

export const settingsQuery = queryOptions({
  queryKey: ['settings'],
  queryFn: ({ signal }) => ask<Settings>('GET', '/api/v1/settings', { signal }),
})

export function useSettings(enabled: boolean) {
  return useQuery({ ...settingsQuery, enabled, staleTime: 30_000 })
}
