import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { ExplanationText } from '../cards/ExplanationText'
import { ErrorState } from '../ui/ErrorState'
import { Spinner } from '../ui/Spinner'
import { ask } from '../wire/api'
import { useBus } from '../wire/bus'
import { readLog } from '../wire/log'
import type { Card } from '../wire/native.generated'

// useExplanation asks the model to explain an approval. The explanation is an event in the log of the session and may
// already be there; the bus announces a new one.
export function useExplanation(card: Card) {
  const queries = useQueryClient()
  const [wanted, setWanted] = useState(false)
  const key = ['explanation', card.id]
  const query = useQuery({
    queryKey: key,
    enabled: wanted,
    queryFn: async ({ signal }) => {
      const events = await readLog(card.session, { after: card.seq, signal })
      const said = events.findLast((event) => event.type === 'ApprovalExplained' && event.body.card === card.seq)
      if (said?.type === 'ApprovalExplained') return said.body.text
      if (!events.some((event) => event.type === 'ExplanationRequested' && event.body.card === card.seq))
        await ask('POST', `/api/v1/approvals/${card.id}`, { body: { decision: 'explain' } })
      return null // the model is still writing it
    },
    staleTime: Infinity,
  })
  useBus(['message'], (message) => {
    const about = message.phase === 'resync' || message.session_id === card.session
    if (wanted && about && typeof query.data !== 'string') void queries.invalidateQueries({ queryKey: key })
  })
  return { wanted, query, explain: () => setWanted(true) }
}

export function Explanation({ of: { wanted, query } }: { of: ReturnType<typeof useExplanation> }) {
  if (!wanted) return null
  if (query.error !== null)
    return (
      <ErrorState what="The explanation could not be loaded." error={query.error} retry={() => void query.refetch()} />
    )
  if (typeof query.data !== 'string') return <Spinner word="Asking the model what this would do…" />
  return <ExplanationText>{query.data}</ExplanationText>
}
