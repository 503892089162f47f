import { useQuery } from '@tanstack/react-query'
import { useId, useMemo, useState, type ReactNode } from 'react'
import { short } from '../ui/amounts'
import { Button, IconButton } from '../ui/Button'
import { classes } from '../ui/classes'
import { ErrorState } from '../ui/ErrorState'
import { ChevronRightIcon } from '../ui/icons'
import { Exact, Mono } from '../ui/Mono'
import { Section } from '../ui/Page'
import { Spinner } from '../ui/Spinner'
import { StatusBadge } from '../ui/StatusBadge'
import { readLog } from '../wire/log'
import type { LogEvent } from '../wire/log.generated'
import type { Run } from '../wire/native.generated'
import { pastAt, type Past, type PastEntry } from './past'
import { money } from './waterfall'

// Replay shows the session as it was at any event. The log is loaded when it is first opened.
export function Replay({ run }: { run: Run }) {
  const [open, setOpen] = useState(false)
  return (
    <Section
      title="Replay"
      aside={
        <Button small kind="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? 'Hide' : 'Step through the session'}
        </Button>
      }
    >
      {open ? (
        <Loaded run={run} />
      ) : (
        <p className="text-sm text-ink-soft">See the whole session as it was at any event, up to the end of this run.</p>
      )}
    </Section>
  )
}

function Loaded({ run }: { run: Run }) {
  const { data, error, refetch } = useQuery({
    queryKey: ['log', run.session, 'until the end of', run.run],
    queryFn: ({ signal }) =>
      readLog(run.session, { until: (event) => event.type === 'RunFinished' && event.run === run.run, signal }),
    staleTime: 0,
    gcTime: 0,
  })
  if (error !== null && data === undefined)
    return <ErrorState what="The log could not be loaded." error={error} retry={() => void refetch()} />
  if (data === undefined) return <Spinner word="Loading the log…" />
  if (data.length === 0) return <p className="text-sm text-ink-soft">The log of this session is empty.</p>
  return <Scrubber log={data} run={run.run} />
}

const exact = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
})

function Scrubber({ log, run }: { log: LogEvent[]; run: number }) {
  const [at, setAt] = useState(log.length - 1)
  const label = useId()
  const event = log[at]!
  const past = useMemo(() => pastAt(log, event.seq), [log, event.seq])
  const start = log.findIndex((one) => one.seq === run)
  const move = (to: number) => setAt(Math.min(log.length - 1, Math.max(0, to)))
  // The next event of an interesting kind: chunks are skipped.
  const step = (by: 1 | -1) => {
    let to = at + by
    while (to > 0 && to < log.length - 1 && log[to]!.type.endsWith('Appended')) to += by
    move(to)
  }
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center gap-2">
        <IconButton label="Previous event" kind="plain" disabled={at === 0} onClick={() => step(-1)}>
          <ChevronRightIcon className="rotate-180" />
        </IconButton>
        <IconButton label="Next event" kind="plain" disabled={at === log.length - 1} onClick={() => step(1)}>
          <ChevronRightIcon />
        </IconButton>
        <input
          type="range"
          aria-label="Event"
          aria-valuetext={`${event.seq}, ${event.type}`}
          aria-describedby={label}
          min={0}
          max={log.length - 1}
          value={at}
          onChange={(change) => move(Number(change.target.value))}
          className="min-w-40 grow accent-accent"
        />
        {start > 0 && (
          <Button small onClick={() => move(start)}>
            Start of this run
          </Button>
        )}
      </div>
      <p id={label} className="text-xs tabular-nums text-ink-soft">
        Event {event.seq}, <span className="font-mono text-ink">{event.type}</span>, {exact.format(new Date(event.at))}
      </p>
      <div className="grid gap-4 lg:grid-cols-[1fr_16rem]">
        <div
          role="region"
          aria-label="The session at this event"
          tabIndex={0}
          className="flex max-h-[60dvh] flex-col gap-3 overflow-y-auto rounded-lg border border-line bg-raised p-4"
        >
          {past.entries.length === 0 && <p className="text-sm text-ink-soft">Nothing has been said yet.</p>}
          {past.entries.map((entry) => (
            <Entry key={entry.seq} entry={entry} />
          ))}
          {past.queued.map((input) => (
            <p key={input.seq} className="text-sm text-ink-soft">
              Queued: <Exact>{input.text}</Exact>
            </p>
          ))}
        </div>
        <Facts past={past} />
      </div>
      <details>
        <summary className="cursor-pointer text-xs text-ink-soft">Raw JSON of this event</summary>
        <Mono block className="mt-1 max-h-80 text-xs">
          {JSON.stringify(event, null, 2)}
        </Mono>
      </details>
    </div>
  )
}

function Entry({ entry }: { entry: PastEntry }) {
  if (entry.who === 'note')
    return (
      <p className="text-center text-xs text-ink-soft">
        <Exact>{entry.text}</Exact>
      </p>
    )
  if (entry.who === 'tool')
    return (
      <div className="text-xs">
        <p className="mb-1 flex items-center gap-2">
          <span className="font-mono">{entry.name}</span>
          <StatusBadge status={entry.status ?? 'asked'} />
        </p>
        <Mono block className="max-h-40 text-xs">
          {entry.text}
        </Mono>
      </div>
    )
  return (
    <div className={classes('text-sm', entry.who === 'user' && 'self-end rounded-lg bg-sunken px-3 py-2')}>
      <p className="text-xs text-ink-soft">{entry.who === 'user' ? 'Message' : entry.name}</p>
      {entry.thinking !== undefined && (
        <p className="whitespace-pre-wrap text-ink-soft">
          <Exact>{entry.thinking}</Exact>
        </p>
      )}
      <p className="whitespace-pre-wrap break-words">
        <Exact>{entry.text}</Exact>
      </p>
    </div>
  )
}

function Facts({ past }: { past: Past }) {
  const facts: [string, ReactNode][] = [
    ['Status', <StatusBadge key="status" status={past.status} />],
    ['Agent', past.agent ?? '–'],
    ['Turn', past.turn ?? '–'],
    [
      'Tokens',
      past.usage.input + past.usage.output === 0
        ? '–'
        : `${short(past.usage.input)} in, ${short(past.usage.output)} out`,
    ],
    ['Cost', money(past.usage) ?? '–'],
    ['Context', past.context === undefined ? '–' : `${short(past.context.tokens)} of ${short(past.context.limit)}`],
    ['Files changed', past.files.length === 0 ? '–' : past.files.join(', ')],
    ['Timers', past.timers.length === 0 ? '–' : past.timers.map((timer) => timer.reason).join(', ')],
  ]
  return (
    <div className="flex flex-col gap-3 text-xs">
      <dl className="grid grid-cols-[auto_1fr] gap-x-3 gap-y-1">
        {facts.map(([name, what]) => (
          <div key={name} className="contents">
            <dt className="text-ink-soft">{name}</dt>
            <dd className="min-w-0 break-words text-right tabular-nums">{what}</dd>
          </div>
        ))}
      </dl>
      {past.plan !== undefined && (
        <div>
          <p className="mb-1 text-ink-soft">Plan, {past.plan.status}</p>
          <ol className="flex list-decimal flex-col gap-0.5 pl-5">
            {past.plan.items.map((item, at) => (
              <li key={at}>
                <Exact>{item.title}</Exact> <span className="text-ink-soft">({item.status.replaceAll('_', ' ')})</span>
              </li>
            ))}
          </ol>
        </div>
      )}
    </div>
  )
}
