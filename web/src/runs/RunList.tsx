import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Button } from '../ui/Button'
import { AgentGlyph } from '../ui/AgentGlyph'
import { EmptyState } from '../ui/EmptyState'
import { ErrorState } from '../ui/ErrorState'
import { Exact } from '../ui/Mono'
import { RelativeTime } from '../ui/RelativeTime'
import { Spinner } from '../ui/Spinner'
import { StatusBadge } from '../ui/StatusBadge'
import { lasting } from '../ui/time'
import { ask } from '../wire/api'
import { useBus } from '../wire/bus'
import type { Run } from '../wire/native.generated'
import { useTitles } from './titles'
import { money, tokens } from './waterfall'
import { classes } from '../ui/classes'

interface RunListProps {
  agent?: string
  project?: string
  session?: string
  parent?: string // a run: lists the runs that it has delegated
  open?: boolean
  limit?: number // page size
  empty?: string
  small?: boolean // one line if the list is empty
}

export function statusOf(run: Run): string {
  return run.outcome ?? (run.waiting ? 'waiting' : 'running')
}

export function tookOf(run: Run): number | undefined {
  return run.ended_at === undefined ? undefined : Date.parse(run.ended_at) - Date.parse(run.started_at)
}

// RunList lists runs, newest first, and loads older ones on request.
export function RunList({
  agent,
  project,
  session,
  parent,
  open,
  limit = 30,
  small,
  empty = 'A run appears here when an agent gets a message or a timer fires.',
}: RunListProps) {
  const queries = useQueryClient()
  const key = ['runs', { agent, project, session, parent, open, limit }]
  const { data, error, isPending, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: key,
    initialPageParam: '',
    queryFn: async ({ pageParam, signal }) => {
      const query = new URLSearchParams({ limit: String(limit) })
      if (agent) query.set('agent', agent)
      if (project) query.set('project', project)
      if (session) query.set('session', session)
      if (parent) query.set('parent', parent)
      if (open) query.set('open', '1')
      if (pageParam !== '') query.set('before', pageParam)
      return (await ask<{ runs: Run[] }>('GET', `/api/v1/runs?${query}`, { signal })).runs
    },
    getNextPageParam: (last) => (last.length < limit ? undefined : last.at(-1)?.started_at),
  })
  const titleOf = useTitles(data?.pages.flat().map(({ root }) => root) ?? [])
  useBus(['run', 'message', 'ask_user', 'widget_resolved'], () => void queries.invalidateQueries({ queryKey: key }))

  if (isPending) return <Spinner word="Loading runs…" />
  if (data === undefined)
    return <ErrorState what="The runs could not be loaded." error={error} retry={() => void refetch()} />
  const runs = data.pages.flat()
  if (runs.length === 0 && small) return <p className="text-sm text-ink-soft">{empty}</p>
  if (runs.length === 0) return <EmptyState title="No runs">{empty}</EmptyState>
  return (
    <div className="flex flex-col gap-3">
      {error !== null && <ErrorState what="The list may be out of date." error={error} retry={() => void refetch()} />}
      <ul className="overflow-hidden rounded-lg border border-line">
        {runs.map((run) => (
          <Row key={run.id} run={run} title={titleOf(run.root)} agent={agent === undefined} />
        ))}
      </ul>
      {hasNextPage && (
        <Button className="self-center" busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          {isFetchingNextPage ? 'Loading…' : 'Older runs'}
        </Button>
      )}
    </div>
  )
}

function Row({ run, title, agent }: { run: Run; title?: string; agent: boolean }) {
  const took = tookOf(run)
  return (
    <li className="border-b border-line last:border-b-0">
      <Link
        to="/runs/$id"
        params={{ id: run.id }}
        className={classes(
          'grid grid-cols-[1fr_auto] items-center gap-x-4 gap-y-0.5 bg-raised px-4 py-2 text-sm',
          'hover:bg-sunken focus-visible:-outline-offset-2 sm:grid-cols-[7rem_1fr_6rem_8rem_5rem]',
        )}
      >
        <span className="justify-self-start">
          <StatusBadge status={statusOf(run)} />
        </span>
        <span className="order-3 col-span-2 min-w-0 truncate sm:order-none sm:col-span-1">
          {agent && (
            <span className="inline-flex items-center gap-2 font-medium">
              <AgentGlyph name={run.agent} />
              {run.agent}
            </span>
          )}
          {run.parent !== undefined && <span className="text-xs text-ink-soft"> sub-agent</span>}{' '}
          <bdi className="text-ink-soft">
            <Exact>{run.message ?? title ?? 'Untitled conversation'}</Exact>
          </bdi>
        </span>
        <span className="hidden text-right text-xs tabular-nums text-ink-soft sm:block">
          {took === undefined ? 'unfinished' : lasting(took)}
        </span>
        <span className="hidden text-right text-xs tabular-nums text-ink-soft sm:block">
          {money(run.usage) ?? tokens(run.usage) ?? ''}
        </span>
        <RelativeTime at={run.started_at} className="text-right text-xs text-ink-soft" />
      </Link>
    </li>
  )
}
