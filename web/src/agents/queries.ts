import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query'
import { ofProject } from '../files/queries'
import { ask } from '../wire/api'
import { useBus } from '../wire/bus'
import type { Agent, AgentDetail } from '../wire/native.generated'

// agentsIn lists the agents of a project; '' is the first project.
export const agentsIn = (project: string) =>
  queryOptions({
    queryKey: project === '' ? ['agents'] : ['agents', { project }],
    queryFn: ({ signal }) =>
      ask<{ agents: Agent[]; problems?: string[] }>('GET', `/api/v1/agents${ofProject(project)}`, { signal }),
  })

export const agentsQuery = agentsIn('')

export const agentQuery = (id: string, project: string) =>
  queryOptions({
    queryKey: ['agents', id, { project }],
    queryFn: ({ signal }) =>
      ask<AgentDetail>('GET', `/api/v1/agents/${encodeURIComponent(id)}${ofProject(project)}`, { signal }),
  })

// useAgentsLive reloads agents when they are started, stopped or changed.
export function useAgentsLive(): void {
  const queries = useQueryClient()
  useBus(['run'], (message) => {
    if (message.phase === 'sync' || message.phase === 'resync') void queries.invalidateQueries({ queryKey: ['agents'] })
  })
}

// useSetAgent starts or stops an agent, in the project if one is named, else in every project.
export function useSetAgent(id: string, project: string) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (to: 'start' | 'stop') =>
      ask<Agent>('POST', `/api/v1/agents/${encodeURIComponent(id)}/${to}${ofProject(project)}`, { body: {} }),
    onSettled: () => queries.invalidateQueries({ queryKey: ['agents'] }),
  })
}

export function useMakeAgent() {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (agent: Record<string, unknown>) => ask<Agent>('POST', '/api/v1/agents', { body: agent }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['agents'] }),
  })
}

export function useDeleteAgent(id: string) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: () => ask('DELETE', `/api/v1/agents/${encodeURIComponent(id)}`),
    onSuccess: () => {
      queries.removeQueries({ queryKey: ['agents', id] })
      return queries.invalidateQueries({ queryKey: ['agents'] })
    },
  })
}
