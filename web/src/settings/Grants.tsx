import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { allowedText } from '../cards/show'
import { titleOf } from '../shell/sessions'
import { Button, buttonLook } from '../ui/Button'
import { EmptyState } from '../ui/EmptyState'
import { ErrorState, why } from '../ui/ErrorState'
import { Exact, Mono } from '../ui/Mono'
import { RelativeTime } from '../ui/RelativeTime'
import { Spinner } from '../ui/Spinner'
import { toast } from '../ui/toast'
import { toolName } from '../ui/tools'
import { ask } from '../wire/api'
import { useMe } from '../wire/me'
import type { Grant, Session } from '../wire/native.generated'

const step = 30 // conversations per request

interface Given extends Grant {
  session: Session
}

// Grants lists the calls that people allowed for the rest of a conversation, in the latest conversations.
export function Grants() {
  const { may } = useMe()
  const queries = useQueryClient()
  const [looked, setLooked] = useState(step)
  const { data, error, isPending, isPlaceholderData, refetch } = useQuery({
    queryKey: ['grants', looked],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const path = `/api/v1/sessions?archived=all&limit=${looked}`
      const { sessions } = await ask<{ sessions: Session[] }>('GET', path, { signal })
      const lists = await Promise.all(
        sessions.map(async (session) => {
          const path = `/api/v1/sessions/${session.id}/grants`
          const { grants } = await ask<{ grants: Grant[] | null }>('GET', path, { signal })
          return (grants ?? []).map((grant): Given => ({ ...grant, session }))
        }),
      )
      const given = lists.flat().sort((a, b) => Date.parse(b.at) - Date.parse(a.at))
      return { given, more: sessions.length === looked }
    },
  })
  const revoke = useMutation({
    mutationFn: ({ session, id }: Given) => ask('DELETE', `/api/v1/sessions/${session.id}/grants/${id}`),
    onSuccess: () => toast('Revoked. The agent asks again.'),
    onError: (problem) => toast(`The rule was not revoked. ${why(problem)}`, 'failed'),
    onSettled: () => queries.invalidateQueries({ queryKey: ['grants'] }),
  })
  if (isPending) return <Spinner word="Loading rules…" />
  if (data === undefined)
    return <ErrorState what="The rules could not be loaded." error={error} retry={() => void refetch()} />
  const further = data.more && (
    <div className="flex flex-wrap items-center gap-3 text-sm text-ink-soft">
      <Button busy={isPlaceholderData} onClick={() => setLooked(looked + step)}>
        Look further back
      </Button>
      These are the rules of your latest {looked} conversations.
    </div>
  )
  if (data.given.length === 0)
    return (
      <>
      <EmptyState
        title="Nothing is allowed without asking"
        action={
          <Link to="/approvals" className={buttonLook()}>
            See what waits for approval
          </Link>
        }
      >
        Always on an approval allows a call for the rest of its conversation. Such rules appear here, and can be revoked.
      </EmptyState>
      {further}
      </>
    )
  return (
    <>
    <ul aria-label="Rules" className="overflow-hidden rounded-lg border border-line">
      {data.given.map((grant) => (
        <li
          key={`${grant.session.id}.${grant.id}`}
          className="flex flex-col gap-2 border-b border-line bg-raised px-4 py-3 text-sm last:border-b-0"
        >
          <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <span className="font-medium">{toolName(grant.tool)}</span>
            <span className="text-ink-soft">{grant.scope === 'similar' ? 'similar calls' : 'exactly this call'}</span>
            <Link
              to="/chat/$session"
              params={{ session: grant.session.id }}
              className="min-w-0 truncate text-accent underline-offset-2 hover:underline"
            >
              <Exact>{titleOf(grant.session)}</Exact>
            </Link>
            <span className="ml-auto text-xs text-ink-soft">
              {grant.by}, <RelativeTime at={grant.at} />
            </span>
            {may('agents:message') && (
              <Button
                small
                aria-label={`Revoke: ${allowedText(grant.tool, grant.text)}`}
                busy={revoke.isPending && revoke.variables === grant}
                onClick={() => revoke.mutate(grant)}
              >
                Revoke
              </Button>
            )}
          </div>
          <Mono block className="max-h-24 text-xs">
            {allowedText(grant.tool, grant.text)}
          </Mono>
        </li>
      ))}
    </ul>
    {further}
    </>
  )
}
