import { useQuery } from '@tanstack/react-query'
import { ask, byCookie } from './api'
import type { Me } from './native.generated'

type Permission =
  'agents:read' | 'agents:message' | 'agents:write' | 'tenant:write' | 'audit:read' | 'users:read' | 'users:write'

// useMe returns the signed-in user and a check for permissions; before the user is loaded nothing is permitted. It only
// hides actions: the server enforces permissions.
export function useMe() {
  const query = useQuery({
    queryKey: ['me'],
    queryFn: async ({ signal }) => {
      const me = await ask<Me>('GET', '/api/v1/me', { signal })
      byCookie(me.auth !== 'local')
      return me
    },
    staleTime: 60_000,
  })
  const may = (permission: Permission) => query.data?.permissions.includes(permission) ?? false
  return { me: query.data, may, query }
}
