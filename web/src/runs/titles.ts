import { useQuery } from '@tanstack/react-query'
import { ask } from '../wire/api'
import type { Session } from '../wire/native.generated'

// useTitles names conversations, as far back as the list goes. One that is not in
// it has no name: those of debug consoles have none.
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
