import { useQuery } from '@tanstack/react-query'
import { ask } from '../wire/api'
import type { Session } from '../wire/native.generated'

// useTitles returns the titles of the listed conversations. Sessions of debug consoles are not listed and have no
// title.
export function useTitles(): (root: string) => string | undefined {
  const { data } = useQuery({
    queryKey: ['sessions', 'titles'],
    queryFn: async ({ signal }) => {
      const { sessions } = await ask<{ sessions: Session[] }>('GET', '/api/v1/sessions?limit=200', { signal })
      return new Map(sessions.map((session) => [session.id, session.title]))
    },
    staleTime: 30_000,
  })
  return (root) => data?.get(root) || undefined
}
