import { useQueries, useQuery } from '@tanstack/react-query'
import { ask } from '../wire/api'
import type { Card } from '../wire/native.generated'

export const waitingKey = ['waiting']

const most = 200 // of a kind, as the server has it

// waitingLists are the requests that wait for a person, by kind. The badge, the rail and the inbox share these queries,
// and one invalidation of their key refreshes all of them.
export const waitingLists = (['approvals', 'questions', 'calls', 'plans'] as const).map((name) => ({
  queryKey: [...waitingKey, name],
  queryFn: async ({ signal }: { signal: AbortSignal }) => {
    const filter = name === 'calls' ? 'status=unknown&' : ''
    const path = `/api/v1/${name}?${filter}limit=${most}`
    return (await ask<Record<string, Card[]>>('GET', path, { signal }))[name] ?? []
  },
}))

// full says whether a list has as many requests as the server lists.
export const full = (list: Card[] | undefined) => (list?.length ?? 0) >= most

// useWaiting counts what waits: approvals, questions, calls of unknown outcome, and plans.
export function useWaiting(): number {
  return useQueries({ queries: waitingLists }).reduce((sum, { data }) => sum + (data?.length ?? 0), 0)
}

const noPlans: ReadonlySet<string> = new Set()
const sessionsOf = (cards: Card[]): ReadonlySet<string> => new Set(cards.map((card) => card.session))

// usePlansThatWait are the conversations with a plan that waits. Their rows do not know: their runs have ended.
export function usePlansThatWait(): ReadonlySet<string> {
  return useQuery({ ...waitingLists[3]!, select: sessionsOf }).data ?? noPlans
}
