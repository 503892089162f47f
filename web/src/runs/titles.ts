import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { ask } from '../wire/api'
import type { Session } from '../wire/native.generated'

// titlesOf returns the titles of conversations by id. The title of a debug console's conversation is its first message,
// although the list of conversations omits it.
export function titlesOf(...lists: Session[][]): Map<string, string> {
  return new Map(
    lists.flat().flatMap((session) => (session.root === session.id ? [[session.id, session.title]] : [])),
  )
}

// useTitles returns the titles of recent conversations, including debug consoles. It loads them again when a
// conversation without a title joins those that are shown: it may have begun after the titles were loaded.
export function useTitles(shown: readonly string[]): (root: string) => string | undefined {
  const { data, refetch } = useQuery({
    queryKey: ['sessions', 'titles'],
    queryFn: async ({ signal }) => {
      const list = (query: string) =>
        ask<{ sessions: Session[] }>('GET', `/api/v1/sessions?limit=200${query}`, { signal })
      const [listed, transient] = await Promise.all([list(''), list('&transient=1')])
      return titlesOf(transient.sessions, listed.sessions)
    },
    staleTime: 30_000,
  })
  const untitled = data === undefined ? '' : shown.filter((root) => !data.get(root)).join(' ')
  useEffect(() => void (untitled !== '' && refetch()), [untitled, refetch])
  return (root) => data?.get(root) || undefined
}
