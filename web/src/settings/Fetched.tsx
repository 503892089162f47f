import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { ErrorState } from '../ui/ErrorState'
import { Spinner } from '../ui/Spinner'
import { toast } from '../ui/toast'
import { ask, Problem } from '../wire/api'

// Fetched loads data and shows it, or the reason why it could not be loaded. Some servers do not offer it.
export function Fetched<T>({ path, name, children }: { path: string; name: string; children: (data: T) => ReactNode }) {
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ['autonomy', path],
    queryFn: ({ signal }) => ask<T>('GET', path, { signal }),
  })
  if (isPending) return <Spinner word={`Loading ${name}…`} />
  if (error instanceof Problem && error.status === 404)
    return <p className="text-sm text-ink-soft">This is not available on this server.</p>
  if (data === undefined)
    return <ErrorState what={`The ${name} could not be loaded.`} error={error} retry={() => void refetch()} />
  return children(data)
}

// useAct changes the data, and reloads all of it.
export function useAct(method: 'POST' | 'DELETE', done: string) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: ({ path, body }: { path: string; body?: unknown }) =>
      ask<{ note?: string } | undefined>(method, path, { body }),
    onSuccess: (answer) => toast(answer?.note ?? done),
    onError: (error) => toast(error.message, 'failed'),
    onSettled: () => queries.invalidateQueries({ queryKey: ['autonomy'] }),
  })
}
