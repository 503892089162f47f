import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { CopyButton } from '../../ui/CopyButton'
import { Dialog } from '../../ui/Dialog'
import { EmptyState } from '../../ui/EmptyState'
import { ErrorState } from '../../ui/ErrorState'
import { TextInput } from '../../ui/Field'
import { Mono } from '../../ui/Mono'
import { Spinner } from '../../ui/Spinner'
import { Fold } from './Fold'
import { readLog, type Reading } from '../../wire/log'

const most = 1000

function atMost(count: number): Reading['until'] {
  return () => --count === 0
}

// RawLog lists the stored events of a session.
export function RawLog({ session, run, onClose }: { session: string; run?: number; onClose: () => void }) {
  const [filter, setFilter] = useState('')
  const after = run === undefined ? 0 : Math.max(0, run - 2) // its input is right before it
  const log = useQuery({
    queryKey: ['log', session, after],
    queryFn: ({ signal }) => readLog(session, { after, until: atMost(most + 1), signal }),
    staleTime: 0,
    gcTime: 0,
  })
  const more = (log.data?.length ?? 0) > most
  const events = (log.data?.slice(0, most) ?? []).filter(
    (event) => filter === '' || event.type.toLowerCase().includes(filter.toLowerCase()),
  )
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title={run === undefined ? 'All events' : 'Events of this run'}
      description="The stored events of this session."
      wide
    >
      <div className="mt-3 flex items-center gap-2">
        <TextInput
          aria-label="Filter by type"
          placeholder="Filter by type"
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
          className="max-w-64"
        />
        <span className="text-xs text-ink-soft">
          {log.data !== undefined && `${events.length} events${more ? ` of the first ${most}` : ''}`}
        </span>
        <span className="grow" />
        <CopyButton words label="Copy all" text={() => events.map((event) => JSON.stringify(event)).join('\n')} />
      </div>
      <div className="mt-3 min-h-40">
        {log.isPending && <Spinner word="Loading the log" />}
        {log.isError && (
          <ErrorState what="The log could not be loaded." error={log.error} retry={() => void log.refetch()} />
        )}
        {log.isSuccess && events.length === 0 && (
          <EmptyState title="No matching events">No event in the log has this type.</EmptyState>
        )}
        <ol>
          {events.map((event) => (
            <li key={event.seq}>
              <Fold
                head={
                  <>
                    <span className="w-12 shrink-0 text-right font-mono text-xs">{event.seq}</span>
                    <span className="font-mono text-xs text-ink">{event.type}</span>
                    <span className="ml-auto shrink-0 font-mono text-xs">{event.at.slice(11, 23)}</span>
                  </>
                }
              >
                {() => (
                  <Mono block className="mb-2 max-h-96 text-xs">
                    {JSON.stringify(event, null, 2)}
                  </Mono>
                )}
              </Fold>
            </li>
          ))}
        </ol>
      </div>
    </Dialog>
  )
}
