import { useParams } from '@tanstack/react-router'
import { useDeferredValue, useId, useState } from 'react'
import { SearchIcon } from '../ui/icons'
import { byDay } from './days'
import { SessionRow } from './SessionRow'
import { useSessions } from './sessions'
import { classes } from '../ui/classes'

const page = 50

// The conversations of the user, by day, with their status.
export function SessionList({ editable }: { editable: boolean }) {
  const [text, setText] = useState('')
  const [limit, setLimit] = useState(page)
  const search = useDeferredValue(text.trim())
  const { data, error, isPending, refetch } = useSessions(search, limit)
  const current = useParams({ strict: false }).session
  const label = useId()
  const groups = byDay(data?.sessions ?? [], (s) => s.updated_at, new Date())
  return (
    <>
      <label
        className={classes(
          'mx-2 flex items-center gap-2 rounded border',
          'border-line px-2 text-ink-soft focus-within:border-line-strong',
        )}
      >
        <SearchIcon className="size-4 shrink-0" />
        <input
          type="search"
          aria-label="Search conversations"
          placeholder="Search titles"
          className="min-w-0 grow bg-transparent py-1.5 text-sm text-ink outline-none placeholder:text-ink-soft"
          value={text}
          onChange={(e) => setText(e.target.value)}
          onKeyDown={(e) => e.key === 'Escape' && setText('')}
        />
      </label>
      <nav aria-label="Conversations" className="min-h-0 grow overflow-y-auto px-2 py-2" tabIndex={-1}>
        {isPending && <p className="px-2 py-1 text-sm text-ink-soft">Loading conversations…</p>}
        {error && (
          <div role="alert" className="px-2 py-1 text-sm">
            <p className="text-failed">Conversations could not be loaded: {error.message}</p>
            <button className="mt-1 underline" onClick={() => void refetch()}>
              Try again
            </button>
          </div>
        )}
        {data?.sessions.length === 0 && (
          <p className="px-2 py-1 text-sm text-ink-soft">
            {search !== ''
              ? 'No conversation has these words in its title.'
              : editable
                ? 'Your conversations appear here. Send a message to start one.'
                : 'There are no conversations that you can read.'}
          </p>
        )}
        {groups.map((group, i) => (
          <section key={group.day} aria-labelledby={`${label}-${i}`} className="mb-2">
            <h2 id={`${label}-${i}`} className="px-1.5 py-1 text-xs text-ink-soft">
              {group.day}
            </h2>
            <ul>
              {group.items.map((session) => (
                <SessionRow key={session.id} session={session} current={session.id === current} editable={editable} />
              ))}
            </ul>
          </section>
        ))}
        {data?.more && (
          <button
            className="w-full rounded px-2 py-1.5 text-left text-sm text-ink-soft hover:bg-sunken"
            onClick={() => setLimit(limit + page)}
          >
            Show more
          </button>
        )}
      </nav>
    </>
  )
}
