import { useQueries, useQuery } from '@tanstack/react-query'
import { ask } from '../wire/api'
import type { Card } from '../wire/native.generated'

export const waitingKey = ['waiting']

const most = 200 // limit of the server for each kind

// waitingLists are the requests that need a person, by kind. The badge, the rail and the inbox share these queries, and
// one invalidation of their key refreshes all of them.
export const waitingLists = (['approvals', 'questions', 'calls', 'plans'] as const).map((name) => ({
  queryKey: [...waitingKey, name],
  queryFn: async ({ signal }: { signal: AbortSignal }) => {
    const filter = name === 'calls' ? 'status=unknown&' : ''
    const path = `/api/v1/${name}?${filter}limit=${most}`
    return (await ask<Record<string, Card[]>>('GET', path, { signal }))[name] ?? []
  },
}))

// full says whether a list has reached the limit of the server.
export const full = (list: Card[] | undefined) => (list?.length ?? 0) >= most

// useWaiting counts the open approvals, questions, calls of unknown outcome, and plans.
export function useWaiting(): number {
  return useQueries({ queries: waitingLists }).reduce((sum, { data }) => sum + (data?.length ?? 0), 0)
}

const noPlans: ReadonlySet<string> = new Set()
const sessionsOf = (cards: Card[]): ReadonlySet<string> => new Set(cards.map((card) => card.session))

// usePlansThatWait returns the conversations with a waiting plan. Their rows do not show it, because their runs have
// ended.
export function usePlansThatWait(): ReadonlySet<string> {
  return useQuery({ ...waitingLists[3]!, select: sessionsOf }).data ?? noPlans
}
