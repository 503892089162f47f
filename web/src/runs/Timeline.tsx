import { Link } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { Button } from '../ui/Button'
import { CopyButton } from '../ui/CopyButton'
import { classes } from '../ui/classes'
import { ChevronDownIcon, ChevronRightIcon } from '../ui/icons'
import { Exact, Mono } from '../ui/Mono'
import { StatusBadge } from '../ui/StatusBadge'
import { lasting } from '../ui/time'
import { money, tokens, type Bar, type Span, type Waterfall } from './waterfall'

const most = 300 // bars, unless the user asks for all

// Timeline draws a run as bars. Each bar unfolds to its details.
export function Timeline({ fall, open }: { fall: Waterfall; open: boolean }) {
  const now = useNow(open)
  const [all, setAll] = useState(false)
  const shown = all ? fall.bars : fall.bars.slice(-most)
  const end = Math.max(open ? now : fall.end, fall.start + 1)
  if (fall.bars.length === 0)
    return (
      <p className="text-sm text-ink-soft">
        {open ? 'The run has started. It has not called a model yet.' : 'The run did not call a model.'}
      </p>
    )
  return (
    <ol className="overflow-hidden rounded-lg border border-line">
      {fall.bars.length > shown.length && (
        <li className="border-b border-line bg-raised px-3 py-1">
          <Button small kind="quiet" onClick={() => setAll(true)}>
            Show {fall.bars.length - shown.length} earlier steps
          </Button>
        </li>
      )}
      {shown.map((bar) => (
        <Line key={bar.id} bar={bar} from={fall.start} to={end} />
      ))}
    </ol>
  )
}

function Line({ bar, from, to }: { bar: Bar; from: number; to: number }) {
  const [open, setOpen] = useState(false)
  const took = (bar.end ?? to) - bar.start
  const quiet = bar.status === 'done' || bar.status === 'succeeded'
  return (
    <li className="border-b border-line last:border-b-0">
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className={classes(
          'grid w-full grid-cols-[1fr_auto] items-center gap-x-4 gap-y-1 bg-raised px-3 py-1.5',
          'text-left text-sm hover:bg-sunken focus-visible:-outline-offset-2 md:grid-cols-[16rem_1fr_5rem]',
        )}
      >
        <span className="flex min-w-0 items-center gap-2" style={{ paddingLeft: `${bar.depth * 1.25}rem` }}>
          {open ? (
            <ChevronDownIcon className="shrink-0 text-ink-soft" />
          ) : (
            <ChevronRightIcon className="shrink-0 text-ink-soft" />
          )}
          <span className={classes('truncate', bar.kind === 'tool' && 'font-mono text-xs')}>
            <Exact>{bar.name}</Exact>
          </span>
          {!quiet && <StatusBadge status={bar.status} />}
        </span>
        <span
          aria-hidden="true"
          className="relative order-3 col-span-2 h-3 rounded bg-sunken md:order-none md:col-span-1"
        >
          <span
            className="absolute inset-y-[5px] rounded bg-line-strong/40"
            style={place(bar.start, bar.end ?? to, from, to)}
          />
          {bar.spans.map((span, at) => (
            <span
              key={at}
              className={classes('absolute inset-y-0 rounded', colour(bar, span))}
              style={{ ...place(span.start, span.end ?? to, from, to), ...(span.kind === 'waited' && striped) }}
            />
          ))}
        </span>
        <span className="text-right text-xs tabular-nums text-ink-soft">{lasting(took)}</span>
      </button>
      {open && <Detail bar={bar} />}
    </li>
  )
}

const striped = { backgroundImage: 'repeating-linear-gradient(135deg, transparent 0 3px, var(--raised) 3px 5px)' }

function colour(bar: Bar, span: Span): string {
  if (span.kind === 'waited') return 'bg-waiting'
  if (bar.status === 'failed' || bar.status === 'blocked') return 'bg-failed'
  return bar.kind === 'turn' || bar.end === undefined ? 'bg-accent' : 'bg-done'
}

// A bar is always wide enough to be seen.
function place(start: number, end: number, from: number, to: number) {
  const whole = to - from
  const left = Math.min(99.5, ((start - from) / whole) * 100)
  return { left: `${left}%`, width: `${Math.min(100 - left, Math.max(0.5, ((end - start) / whole) * 100))}%` }
}

function Detail({ bar }: { bar: Bar }) {
  const asked = bar.events.find((event) => event.type === 'ToolCallRequested')?.body.arguments
  const result = bar.events.find((event) => event.type === 'ToolCallFinished')?.body.result
  const raw = JSON.stringify(bar.events, null, 2)
  const waited = bar.spans
    .filter((span) => span.kind === 'waited' && span.end !== undefined)
    .reduce((sum, span) => sum + span.end! - span.start, 0)
  return (
    <div className="flex flex-col gap-2 border-t border-line bg-paper px-4 py-3 text-sm">
      <p className="flex flex-wrap gap-x-4 gap-y-1 text-xs text-ink-soft">
        <span>{bar.status}</span>
        {waited > 0 && <span>waited {lasting(waited)}</span>}
        {tokens(bar.usage) !== undefined && <span>{tokens(bar.usage)}</span>}
        {money(bar.usage) !== undefined && <span>{money(bar.usage)}</span>}
        {bar.child !== undefined && (
          <Link
            to="/runs"
            search={{ session: bar.child } as never}
            className="text-accent underline underline-offset-2"
          >
            Runs of the sub-agent
          </Link>
        )}
      </p>
      {bar.note !== undefined && (
        <p className="break-words">
          <Exact>{bar.note}</Exact>
        </p>
      )}
      {typeof asked === 'string' && <Labelled name="Arguments" text={asked} />}
      {typeof result === 'string' && <Labelled name="Result" text={result} />}
      <details>
        <summary className="cursor-pointer text-xs text-ink-soft">
          Raw JSON of {bar.events.length === 1 ? '1 event' : `${bar.events.length} events`}
        </summary>
        <div className="mt-1 flex items-start gap-1">
          <Mono block className="max-h-80 grow text-xs">
            {raw}
          </Mono>
          <CopyButton text={raw} />
        </div>
      </details>
    </div>
  )
}

function Labelled({ name, text }: { name: string; text: string }) {
  return (
    <div>
      <p className="text-xs text-ink-soft">{name}</p>
      <Mono block className="max-h-60 text-xs">
        {text}
      </Mono>
    </div>
  )
}

// useNow ticks while a run is active.
function useNow(on: boolean): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    if (!on) return
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [on])
  return now
}
