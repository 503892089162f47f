import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { allowedText } from '../../cards/show'
import { Button } from '../../ui/Button'
import { why } from '../../ui/ErrorState'
import { Mono } from '../../ui/Mono'
import { toast } from '../../ui/toast'
import { ask } from '../../wire/api'
import type { Grant } from '../../wire/native.generated'
import { useChat } from './chatContext'
import { runsKey } from './queries'

// Grants lists the calls that people allowed for the rest of the conversation. They can be revoked.
export function Grants() {
  const { session, mayMessage, cards } = useChat()
  const queries = useQueryClient()
  const path = `/api/v1/sessions/${session}/grants`
  // A grant is given on a card: the list is read again when one opens or closes, and when a run ends.
  const key = [...runsKey(session), 'grants']
  const { data: grants = [] } = useQuery({
    queryKey: [...key, cards.length],
    queryFn: ({ signal }) => ask<{ grants: Grant[] }>('GET', path, { signal }),
    select: (answer) => answer.grants,
    placeholderData: keepPreviousData,
    retry: false, // the server does not know a new conversation yet
  })
  const revoke = useMutation({
    mutationFn: (id: string) => ask('DELETE', `${path}/${id}`),
    onError: (error) => toast(`The grant was not revoked. ${why(error)}`, 'failed'),
    onSettled: () => queries.invalidateQueries({ queryKey: key }),
  })
  if (grants.length === 0) return <p className="text-ink-soft">Nothing is allowed without asking.</p>
  return (
    <ul aria-label="Grants" className="flex flex-col gap-2">
      {grants.map(({ id, scope, tool, text }) => (
        <li key={id} className="flex flex-col gap-1">
          <div className="flex items-center gap-2 text-xs">
            <Mono>{tool}</Mono>
            <span className="text-ink-soft">{scope === 'similar' ? 'similar calls' : 'exactly this call'}</span>
            <Button
              small
              kind="quiet"
              className="ml-auto"
              aria-label={`Revoke: ${allowedText(tool, text)}`}
              disabled={!mayMessage}
              busy={revoke.isPending && revoke.variables === id}
              onClick={() => revoke.mutate(id)}
            >
              Revoke
            </Button>
          </div>
          <Mono block className="max-h-24 text-xs">
            {allowedText(tool, text)}
          </Mono>
        </li>
      ))}
    </ul>
  )
}
