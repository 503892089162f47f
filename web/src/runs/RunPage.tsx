import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { InboxCard } from '../approvals/InboxCard'
import { useCards } from '../approvals/useCards'
import { searchFor } from '../files/namedProject'
import { AgentGlyph } from '../ui/AgentGlyph'
import { Button, buttonLook } from '../ui/Button'
import { CopyButton } from '../ui/CopyButton'
import { EmptyState } from '../ui/EmptyState'
import { ErrorState } from '../ui/ErrorState'
import { StopIcon } from '../ui/icons'
import { Exact, Mono } from '../ui/Mono'
import { Page, Section } from '../ui/Page'
import { RelativeTime } from '../ui/RelativeTime'
import { Spinner } from '../ui/Spinner'
import { StatusBadge } from '../ui/StatusBadge'
import { lasting } from '../ui/time'
import { toast } from '../ui/toast'
import { ask, Problem } from '../wire/api'
import { useBus } from '../wire/bus'
import { useMe } from '../wire/me'
import type { Run } from '../wire/native.generated'
import { modelCalls } from './calls'
import { ModelCalls } from './ModelCalls'
import { Replay } from './Replay'
import { RunList, statusOf, tookOf } from './RunList'
import { Timeline } from './Timeline'
import { useTitles } from './titles'
import { useLog } from './useLog'
import { money, tokens, usageOf, waterfall } from './waterfall'
import { classes } from '../ui/classes'

export function RunPage() {
  const { id } = useParams({ from: '/runs/$id' })
  const queries = useQueryClient()
  const key = ['runs', id]
  const {
    data: run,
    error,
    isPending,
    refetch,
  } = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => ask<Run>('GET', `/api/v1/runs/${encodeURIComponent(id)}`, { signal }),
  })
  useBus(['run', 'ask_user', 'widget_resolved'], (message) => {
    if (message.session_id === undefined || message.session_id === run?.session)
      void queries.invalidateQueries({ queryKey: key })
  })
  if (isPending)
    return (
      <Page title="Run">
        <Spinner word="Loading the run…" />
      </Page>
    )
  if (run === undefined)
    return (
      <Page title="Run">
        {error instanceof Problem && error.status === 404 ? (
          <EmptyState
            title="Run not found"
            action={
              <Link to="/runs" className={buttonLook()}>
                All runs
              </Link>
            }
          >
            It may have been deleted with its conversation, or it may belong to another user.
          </EmptyState>
        ) : (
          <ErrorState what="The run could not be loaded." error={error} retry={() => void refetch()} />
        )}
      </Page>
    )
  return <Shown key={id} run={run} />
}

function Shown({ run }: { run: Run }) {
  const { may } = useMe()
  const status = statusOf(run)
  const log = useLog(run.session, run.run, run.outcome === undefined)
  const fall = useMemo(
    () => (log.events === undefined ? undefined : waterfall(log.events, run.run)),
    [log.events, run.run],
  )
  const calls = useMemo(
    () => (log.events === undefined ? undefined : modelCalls(log.events, run.run)),
    [log.events, run.run],
  )
  const usage = run.usage ?? (fall === undefined ? {} : usageOf(fall))
  const titleOf = useTitles([run.root])
  const took = tookOf(run)
  return (
    <Page
      wide
      title={
        <>
          <AgentGlyph name={run.agent} large /> Run of{' '}
          <Link
            to="/agents/$id"
            params={{ id: run.agent }}
            search={searchFor(run.project)}
            className="underline-offset-4 hover:underline"
          >
            {run.agent}
          </Link>
          <StatusBadge status={status} />
        </>
      }
      lead={
        <>
          Started <RelativeTime at={run.started_at} /> in{' '}
          <Link to="/chat/$session" params={{ session: run.root }} className="text-accent underline underline-offset-2">
            <Exact>{titleOf(run.root) ?? 'this conversation'}</Exact>
          </Link>
          {run.parent !== undefined && (
            <>
              , delegated by{' '}
              <Link
                to="/runs/$id"
                params={{ id: `${run.parent.session}.${run.parent.run}` }}
                className="text-accent underline underline-offset-2"
              >
                its parent run
              </Link>
            </>
          )}
        </>
      }
      actions={run.outcome === undefined && may('agents:message') ? <Stop run={run} /> : undefined}
    >
      {run.message !== undefined && (
        <div className="rounded-md border border-line bg-raised px-4 py-3 text-sm">
          <Exact>{run.message}</Exact>{' '}
          {run.code !== undefined && <span className="font-mono text-xs text-ink-soft">({run.code})</span>}
        </div>
      )}
      {run.outcome === undefined && <Waiting run={run} may={may('agents:message')} />}
      <dl
        className={classes(
          'grid grid-cols-2 gap-px overflow-hidden rounded-lg',
          'border border-line bg-line sm:grid-cols-3 lg:grid-cols-6',
        )}
      >
        <Stat name="Duration" what={took === undefined ? 'unfinished' : lasting(took)} />
        <Stat name="Turns" what={count(fall?.bars.filter((bar) => bar.kind === 'turn').length)} />
        <Stat name="Tool calls" what={count(fall?.bars.filter((bar) => bar.kind === 'tool').length)} />
        <Stat
          name="Input tokens"
          what={count(usage.input)}
          more={usage.cached ? `${count(usage.cached)} cached` : undefined}
        />
        <Stat name="Output tokens" what={count(usage.output)} />
        <Stat
          name="Cost"
          what={money(usage) ?? '–'}
          more={money(usage) === undefined && tokens(usage) !== undefined ? 'price unknown' : undefined}
        />
      </dl>
      <Section
        title="Timeline"
        aside={<span className="text-xs text-ink-soft">Solid: working. Striped: waiting for a person.</span>}
      >
        {log.error !== null && <ErrorState what="The log could not be loaded." error={log.error} retry={log.again} />}
        {fall === undefined ? (
          log.error === null && <Spinner word="Loading the log…" />
        ) : (
          <Timeline fall={fall} open={run.outcome === undefined} />
        )}
      </Section>
      {calls !== undefined && (
        <Section title="Model calls">
          <ModelCalls run={run.id} calls={calls} />
        </Section>
      )}
      <Replay run={run} />
      <Section title="Sub-agents">
        <RunList small parent={run.id} limit={20} empty="This run has no sub-agents." />
      </Section>
      <Raw run={run} events={fall?.events} />
    </Page>
  )
}

// Waiting shows the open cards of the run, which can be answered here as in the
// inbox.
function Waiting({ run, may }: { run: Run; may: boolean }) {
  const { cards, answer, refetch } = useCards()
  const mine = cards.filter((card) => card.session === run.session && card.run === run.run)
  if (mine.length === 0) return null
  return (
    <Section title="Waiting for you">
      {mine.map((card) => (
        <InboxCard key={card.id} card={card} may={may} answer={answer} decided={() => void refetch()} />
      ))}
    </Section>
  )
}

function count(n: number | undefined): string {
  return (n ?? 0).toLocaleString()
}

function Stat({ name, what, more }: { name: string; what: string; more?: string }) {
  return (
    <div className="bg-raised px-4 py-3">
      <dt className="text-xs text-ink-soft">{name}</dt>
      <dd className="tabular-nums">
        {what} {more !== undefined && <span className="block text-xs text-ink-soft">{more}</span>}
      </dd>
    </div>
  )
}

function Stop({ run }: { run: Run }) {
  const queries = useQueryClient()
  const stop = useMutation({
    mutationFn: () => ask('POST', `/api/v1/runs/${encodeURIComponent(run.id)}/cancel`, { body: {} }),
    onError: (error) => toast(error.message, 'failed'),
    onSettled: () => queries.invalidateQueries({ queryKey: ['runs'] }),
  })
  return (
    <Button busy={stop.isPending} onClick={() => stop.mutate()}>
      <StopIcon /> Stop this run
    </Button>
  )
}

// Raw is the log of the run as the server has it.
function Raw({ run, events }: { run: Run; events: unknown[] | undefined }) {
  const [open, setOpen] = useState(false)
  const text = () => JSON.stringify({ run, events: events ?? [] }, null, 2)
  return (
    <Section
      title="Raw JSON"
      aside={
        <div className="flex items-center">
          <Mono className="hidden sm:inline">{run.id}</Mono>
          <CopyButton words text={text} />
          <Button small kind="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? 'Hide' : `Show ${events?.length ?? 0} events`}
          </Button>
        </div>
      }
    >
      {open && (
        <Mono block className="max-h-[60dvh] text-xs">
          {text()}
        </Mono>
      )}
    </Section>
  )
}
