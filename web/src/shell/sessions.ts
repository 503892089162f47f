import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { ask } from '../wire/api'
import type { Session } from '../wire/native.generated'

export const sessionsKey = ['sessions']

// useSessions lists the conversations that the user can see, the latest first. Sub-agents are reached through their
// parent.
export function useSessions(search: string, limit: number, marked: 'any' | 'pinned' | 'archived' = 'any') {
  return useQuery({
    queryKey: [...sessionsKey, search, limit, marked],
    queryFn: async ({ signal }) => {
      const query = new URLSearchParams({ limit: String(limit) })
      if (search !== '') query.set('search', search)
      if (marked !== 'any') query.set(marked, '1')
      const { sessions } = await ask<{ sessions: Session[] }>('GET', `/api/v1/sessions?${query}`, { signal })
      return { more: sessions.length >= limit, sessions: sessions.filter((s) => s.root === s.id) }
    },
    placeholderData: keepPreviousData,
  })
}

export function titleOf(session: Session): string {
  return session.title.trim() || 'Untitled conversation'
}

export function useRename() {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: ({ id, title }: { id: string; title: string }) =>
      ask('PATCH', `/api/v1/sessions/${id}`, { body: { title } }),
    onSettled: () => queries.invalidateQueries({ queryKey: sessionsKey }),
  })
}

export function useDelete() {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (id: string) => ask('DELETE', `/api/v1/sessions/${id}`),
    onSettled: () => queries.invalidateQueries({ queryKey: sessionsKey }),
  })
}

interface MarkChange {
  id: string
  pinned?: boolean
  archived?: boolean
  read?: true
}

// useMark changes the user's marks on a conversation.
export function useMark() {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: ({ id, ...marks }: MarkChange) => ask('PUT', `/api/v1/sessions/${id}/marks`, { body: marks }),
    onSettled: () => queries.invalidateQueries({ queryKey: sessionsKey }),
  })
}
