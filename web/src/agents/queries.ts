import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query'
import { ask } from '../wire/api'
import { useBus } from '../wire/bus'
import type { Agent, AgentDetail } from '../wire/native.generated'

export const agentsQuery = queryOptions({
  queryKey: ['agents'],
  queryFn: ({ signal }) => ask<{ agents: Agent[]; problems?: string[] }>('GET', '/api/v1/agents', { signal }),
})

export const agentQuery = (id: string) =>
  queryOptions({
    queryKey: ['agents', id],
    queryFn: ({ signal }) => ask<AgentDetail>('GET', `/api/v1/agents/${encodeURIComponent(id)}`, { signal }),
  })

// useAgentsLive reloads agents when they are started, stopped or changed.
export function useAgentsLive(): void {
  const queries = useQueryClient()
  useBus(['run'], (message) => {
    if (message.phase === 'sync' || message.phase === 'resync') void queries.invalidateQueries({ queryKey: ['agents'] })
  })
}

export function useSetAgent(id: string) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (to: 'start' | 'stop') =>
      ask<Agent>('POST', `/api/v1/agents/${encodeURIComponent(id)}/${to}`, { body: {} }),
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
