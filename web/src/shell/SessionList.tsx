import { Link, useParams } from '@tanstack/react-router'
import { useVirtualizer } from '@tanstack/react-virtual'
import { memo, useDeferredValue, useEffect, useRef, useState } from 'react'
import { ArchiveIcon, SearchIcon } from '../ui/icons'
import { RelativeTime } from '../ui/RelativeTime'
import { classes } from '../ui/classes'
import { Problem } from '../wire/api'
import { useConnection } from '../wire/connection'
import type { Passage, Session } from '../wire/native.generated'
import { byDay } from './days'
import { hashOf } from './jump'
import { Marked } from './Marked'
import { usePassages } from './search'
import { SessionRow } from './SessionRow'
import { useSessions } from './sessions'
import { usePlansThatWait } from './waiting'

const page = 50

type Row =
  | { kind: 'heading'; key: string }
  | { kind: 'session'; key: string; session: Session }
  | { kind: 'passage'; key: string; passage: Passage }

// The conversations of the user: pinned ones first, then by day, with their status. A search finds titles and messages.
export function SessionList({ editable }: { editable: boolean }) {
  const [text, setText] = useState('')
  const [archive, setArchive] = useState(false)
  const [limit, setLimit] = useState(page)
  const search = useDeferredValue(text.trim())
  const { data, error, isPending, refetch } = useSessions(search, limit, archive && search === '' ? 'archived' : 'any')
  const pinned = useSessions('', 200, 'pinned').data?.sessions ?? []
  const { passages, indexing, searching } = usePassages(search, 20)
  const current = useParams({ strict: false }).session
  const rows = rowsOf(data?.sessions ?? [], search === '' && !archive ? pinned : [], search === '' ? [] : passages)
  const empty = rows.length === 0 && data !== undefined
  const connection = useConnection()
  // The banner says that the server is away.
  const away = connection.state !== 'online' && error instanceof Problem && error.status === 0
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
          placeholder="Search conversations"
          className="min-w-0 grow bg-transparent py-1.5 text-sm text-ink outline-none placeholder:text-ink-soft"
          value={text}
          onChange={(e) => setText(e.target.value)}
          onKeyDown={(e) => e.key === 'Escape' && setText('')}
        />
      </label>
      <Rows
        rows={rows}
        current={current}
        editable={editable}
        onEnd={() => data?.more === true && setLimit((n) => (n < 2000 ? n + 150 : n))}
      >
        {isPending && <p className="px-2 py-1 text-sm text-ink-soft">Loading conversations…</p>}
        {error && !away && (
          <div role="alert" className="px-2 py-1 text-sm">
            <p className="text-failed">Conversations could not be loaded: {error.message}</p>
            <button className="mt-1 underline" onClick={() => void refetch()}>
              Try again
            </button>
          </div>
        )}
        {empty && !(search !== '' && searching) && (
          <p className="px-2 py-1 text-sm text-ink-soft">
            {search !== ''
              ? 'No conversation has these words.'
              : archive
                ? 'Your archive is empty.'
                : editable
                  ? 'Your conversations appear here. Send a message to start one.'
                  : 'There are no conversations that you can read.'}
          </p>
        )}
        {indexing && (
          <p className="px-2 py-1 text-xs text-ink-soft">
            Earlier messages are still being indexed. Some may be missing.
          </p>
        )}
      </Rows>
      {search === '' && (
        <button
          className={classes(
            'mx-2 mb-1 flex items-center gap-2 rounded px-1.5 py-1 text-left text-xs text-ink-soft',
            'hover:bg-sunken hover:text-ink max-md:min-h-11',
          )}
          aria-pressed={archive}
          onClick={() => {
            setArchive(!archive)
            setLimit(page)
          }}
        >
          <ArchiveIcon className="size-4 shrink-0" /> {archive ? 'Back to conversations' : 'Archive'}
        </button>
      )}
    </>
  )
}

function rowsOf(sessions: readonly Session[], pinned: readonly Session[], passages: readonly Passage[]): Row[] {
  const rows: Row[] = []
  const add = (heading: string, list: readonly Session[]) => {
    if (list.length === 0) return
    rows.push({ kind: 'heading', key: heading })
    for (const session of list) rows.push({ kind: 'session', key: session.id, session })
  }
  const top = new Set(pinned.map((s) => s.id))
  add('Pinned', pinned)
  const others = sessions.filter((s) => !top.has(s.id))
  for (const { day, items } of byDay(others, (s) => s.updated_at, new Date())) add(day, items)
  if (passages.length > 0) rows.push({ kind: 'heading', key: 'Messages' })
  for (const passage of passages) rows.push({ kind: 'passage', key: `${passage.session} ${passage.seq}`, passage })
  return rows
}

interface RowsProps {
  rows: Row[]
  current: string | undefined
  editable: boolean
  onEnd: () => void
  children: React.ReactNode // above the rows
}

// Rows renders the visible rows only: a list of thousands scrolls like one of ten.
function Rows({ rows, current, editable, onEnd, children }: RowsProps) {
  const box = useRef<HTMLElement>(null)
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: (at) => (rows[at]?.kind === 'passage' ? 74 : rows[at]?.kind === 'heading' ? 30 : 32),
    getItemKey: (at) => rows[at]?.key ?? at,
    overscan: 8,
  })
  const plans = usePlansThatWait()
  const items = virtual.getVirtualItems()
  const last = items.at(-1)?.index ?? -1
  useEffect(() => {
    if (last >= 0 && last >= rows.length - 5) onEnd()
  }, [last, rows.length])
  return (
    <nav
      ref={box}
      aria-label="Conversations"
      className="min-h-0 grow overflow-y-auto px-2 py-2"
      tabIndex={-1}
    >
      {children}
      <ul className="relative" style={{ height: virtual.getTotalSize() }}>
        {items.map((item) => (
          <li
            key={item.key}
            ref={virtual.measureElement}
            data-index={item.index}
            className="absolute top-0 left-0 w-full"
            style={{ transform: `translateY(${item.start}px)` }}
          >
            <OneRow
              row={rows[item.index]}
              current={current === rows[item.index]?.key}
              editable={editable}
              plans={plans}
            />
          </li>
        ))}
      </ul>
    </nav>
  )
}

interface OneRowProps {
  row: Row | undefined
  current: boolean
  editable: boolean
  plans: ReadonlySet<string> // conversations with a waiting plan
}

// OneRow is rendered again only when its row changes, and not at every step of a scroll.
const OneRow = memo(function OneRow({ row, current, editable, plans }: OneRowProps) {
  if (row === undefined) return null
  if (row.kind === 'heading') return <h2 className="px-1.5 pt-2 pb-1 text-xs text-ink-soft">{row.key}</h2>
  if (row.kind === 'session')
    return (
      <SessionRow
        session={row.session}
        current={current}
        editable={editable}
        planWaits={plans.has(row.session.id)}
      />
    )
  const { passage } = row
  return (
    <Link
      to="/chat/$session"
      params={{ session: passage.session }}
      hash={hashOf(passage)}
      className="block rounded px-1.5 py-1.5 text-sm hover:bg-sunken"
    >
      <span className="line-clamp-2 text-ink-soft">
        <Marked text={passage.text} marks={passage.marks} />
      </span>
      <span className="flex gap-1 text-xs text-ink-soft">
        <bdi className="grow truncate">{passage.title.trim() || 'Untitled conversation'}</bdi>
        <RelativeTime at={passage.at} short className="shrink-0" />
      </span>
    </Link>
  )
})
