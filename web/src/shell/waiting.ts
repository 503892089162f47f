import { useQuery } from '@tanstack/react-query'
import { ask } from '../wire/api'

export const waitingKey = ['waiting']

// useWaiting counts the open cards: approvals, questions, and calls of unknown outcome.
export function useWaiting(): number {
  const { data } = useQuery({
    queryKey: [...waitingKey, 'count'],
    queryFn: async ({ signal }) => {
      const [approvals, questions, calls] = await Promise.all([
        ask<{ approvals: unknown[] }>('GET', '/api/v1/approvals?limit=100', { signal }),
        ask<{ questions: unknown[] }>('GET', '/api/v1/questions?limit=100', { signal }),
        ask<{ calls: unknown[] }>('GET', '/api/v1/calls?status=unknown&limit=100', { signal }),
      ])
      return approvals.approvals.length + questions.questions.length + calls.calls.length
    },
  })
  return data ?? 0
}
