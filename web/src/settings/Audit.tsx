import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../ui/Button'
import { classes } from '../ui/classes'
import { EmptyState } from '../ui/EmptyState'
import { ErrorState } from '../ui/ErrorState'
import { Select, TextInput } from '../ui/Field'
import { Exact, Mono } from '../ui/Mono'
import { RelativeTime } from '../ui/RelativeTime'
import { Spinner } from '../ui/Spinner'
import { ask } from '../wire/api'
import type { AuditEvent } from '../wire/native.generated'
import { aboutOf, actions, wordsOf } from './audited'

const most = 50 // of a page

// Audit lists the security decisions of the tenant: action, time and user.
export function Audit() {
  const [{ user, session, from, until }, setFilter] = useState(nothing)
  const [action, setAction] = useState('')
  const { data, error, isPending, isFetchingNextPage, hasNextPage, fetchNextPage, refetch } = useInfiniteQuery({
    queryKey: ['audit', user, session, from, until, action],
    initialPageParam: '',
    queryFn: async ({ pageParam, signal }) => {
      const query = new URLSearchParams({ limit: String(most) })
      if (user !== '') query.set('user_id', user)
      if (action !== '') query.set('action', action)
      if (session !== '') query.set('session', session)
      if (from !== '') query.set('after', new Date(from).toISOString())
      if (until !== '') query.set('before', new Date(until).toISOString())
      if (pageParam !== '') query.set('cursor', pageParam)
      return ask<{ events: AuditEvent[]; next?: string }>('GET', `/api/v1/audit/events?${query}`, { signal })
    },
    getNextPageParam: ({ next }) => next,
  })
  const events = data?.pages.flatMap((page) => page.events) ?? []
  const filtered = action !== '' || [user, session, from, until].some((value) => value !== '')
  return (
    <>
      <form
        className="grid items-end gap-3 sm:grid-cols-2 xl:grid-cols-3"
        aria-label="Filter"
        onSubmit={(event) => {
          event.preventDefault()
          setFilter(filterOf(event.currentTarget))
        }}
        onReset={() => {
          setFilter(nothing)
          setAction('')
        }}
      >
        <label className={column}>
          Who
          <TextInput name="user" placeholder="User id" spellCheck={false} />
        </label>
        <label className={column}>
          What
          <Select value={action} onChange={(event) => setAction(event.target.value)}>
            <option value="">Everything</option>
            {actions.map(([name, words]) => (
              <option key={name} value={name}>
                {words}
              </option>
            ))}
          </Select>
        </label>
        <label className={column}>
          Conversation
          <TextInput name="session" placeholder="Its id or address" spellCheck={false} />
        </label>
        <label className={column}>
          From
          <TextInput name="from" type="datetime-local" />
        </label>
        <label className={column}>
          Until
          <TextInput name="until" type="datetime-local" />
        </label>
        <div className="flex gap-2">
          <Button type="submit">Filter</Button>
          {filtered && (
            <Button type="reset" kind="quiet">
              Show everything
            </Button>
          )}
        </div>
      </form>
      {error !== null && (
        <ErrorState what="The audit could not be loaded." error={error} retry={() => void refetch()} />
      )}
      {isPending && error === null && <Spinner word="Loading the audit…" />}
      {data !== undefined && events.length === 0 && (
        <EmptyState title={filtered ? 'No record matches' : 'Nothing is recorded yet'}>
          {filtered
            ? 'Choose another user, conversation, time or kind of record.'
            : 'The server records messages, approvals, tool calls, sign-ins and refusals here. Records are chained: ' +
              '“parley audit verify” shows whether one was changed.'}
        </EmptyState>
      )}
      {events.length > 0 && (
        <ol aria-label="Audit records" className="overflow-hidden rounded-lg border border-line">
          {events.map((event) => (
            <Record key={event.id} event={event} />
          ))}
        </ol>
      )}
      {hasNextPage && (
        <div>
          <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            Load earlier records
          </Button>
        </div>
      )}
    </>
  )
}

const column = 'flex min-w-0 flex-col gap-1 text-sm font-medium'

const nothing = { user: '', session: '', from: '', until: '' }

// filterOf reads the fields of the form. A conversation may be named by the address of its page.
function filterOf(form: HTMLFormElement): typeof nothing {
  const fields = new FormData(form)
  const text = (name: string) => ((fields.get(name) as string | null) ?? '').trim()
  const session = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(text('session'))?.[0] ?? text('session')
  return { user: text('user'), session, from: text('from'), until: text('until') }
}

function Record({ event }: { event: AuditEvent }) {
  const refused = /denied|blocked|failed|halted/.test(event.action)
  const about = aboutOf(event.metadata)
  return (
    <li className="border-b border-line bg-raised last:border-b-0">
      <details className="group">
        <summary
          className={classes(
            'flex cursor-pointer flex-wrap items-center gap-x-4 gap-y-0.5 px-4 py-2 text-sm',
            'hover:bg-sunken focus-visible:-outline-offset-2',
          )}
        >
          <span
            className={classes(
              'min-w-0 grow basis-full break-words sm:basis-56',
              refused && 'font-medium text-failed',
            )}
          >
            {wordsOf(event.action)}
            {about !== '' && (
              <span className="ml-2 font-normal text-ink-soft">
                <Exact>{about}</Exact>
              </span>
            )}
            {event.resource_id !== undefined && (
              <span className="ml-2 font-mono text-xs font-normal text-ink-soft">
                <Exact>{short(event.resource_id)}</Exact>
              </span>
            )}
          </span>
          <span className="min-w-0 truncate text-ink-soft sm:w-32">
            <Exact>{event.user_id || 'the server'}</Exact>
          </span>
          <RelativeTime at={event.created_at} className="ml-auto text-right text-xs text-ink-soft sm:w-28" />
        </summary>
        <Mono block className="mx-4 mb-3 max-h-80 text-xs">
          {JSON.stringify(event, null, 2)}
        </Mono>
      </details>
    </li>
  )
}

// short cuts the ids of sessions, which are long.
function short(id: string): string {
  return id.replace(/^([0-9a-f]{8})-[0-9a-f-]{27}/, '$1…')
}
