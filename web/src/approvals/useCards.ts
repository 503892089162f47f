import { useQueries, useQueryClient } from '@tanstack/react-query'
import { useCallback, useRef } from 'react'
import { full, waitingKey, waitingLists } from '../shell/waiting'
import { toast } from '../ui/toast'
import { ask, Problem } from '../wire/api'
import { useBus } from '../wire/bus'
import type { UiMessage } from '../wire/bus.generated'
import type { Card } from '../wire/native.generated'

// useCards lists the open cards, oldest first. A card disappears as soon as any client has answered it.
export function useCards() {
  const queries = useQueryClient()
  const mine = useRef(new Set<string>()) // cards answered by this page
  const result = useQueries({ queries: waitingLists })
  const failed = result.find((one) => one.error !== null)
  const cards = result.flatMap((one) => one.data ?? []).sort((a, b) => a.asked_at.localeCompare(b.asked_at))

  const refetch = useCallback(() => queries.invalidateQueries({ queryKey: waitingKey }), [queries])

  const drop = useCallback(
    (id: string) => {
      for (const { queryKey } of waitingLists)
        queries.setQueryData<Card[]>(queryKey, (list) => list?.filter((card) => card.id !== id))
    },
    [queries],
  )

  const answered = (message: UiMessage) => {
    for (const { id, resolution } of resolvedBy(message)) {
      const card = cards.find((one) => one.id === id)
      if (card === undefined) continue
      if (!mine.current.has(id))
        toast(`The request of ${card.agent} was answered elsewhere${resolution === '' ? '' : `: ${resolution}`}.`)
      drop(id)
    }
  }
  useBus(['ask_user', 'widget_resolved'], (message) => {
    if (message.kind === 'widget_resolved') answered(message)
    void refetch()
  })

  // answer sends an answer; the card is gone when the server has accepted it.
  const answer = useCallback(
    async (card: Card, path: string, body: unknown) => {
      mine.current.add(card.id)
      try {
        await ask('POST', path, { body })
        drop(card.id)
      } catch (problem) {
        mine.current.delete(card.id)
        if (problem instanceof Problem && (problem.status === 410 || problem.status === 404)) {
          toast('This request was answered elsewhere or has expired.')
          drop(card.id)
        } else throw problem
      }
      void refetch()
    },
    [drop, refetch],
  )

  const more = result.some((one) => full(one.data))
  const loading = result.some((one) => one.isPending)
  return { cards, more, loading, failed: failed?.error ?? null, refetch, answer, drop }
}

// resolvedBy reads a widget_resolved message and checks its fields.
function resolvedBy(message: UiMessage): { id: string; resolution: string }[] {
  if (typeof message.data !== 'object' || message.data === null) return []
  const { widget_id, widget_ids, resolution } = message.data as Record<string, unknown>
  const ids = Array.isArray(widget_ids) ? widget_ids : [widget_id]
  return ids
    .filter((id) => typeof id === 'string')
    .map((id) => ({ id, resolution: typeof resolution === 'string' ? resolution : '' }))
}
