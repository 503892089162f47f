import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useDeferredValue, useMemo, useState } from 'react'
import { agentsQuery } from '../agents/queries'
import { projectsQuery } from '../files/queries'
import { dollars, short } from '../ui/amounts'
import { AgentGlyph } from '../ui/AgentGlyph'
import { Button, buttonLook } from '../ui/Button'
import { EmptyState } from '../ui/EmptyState'
import { ErrorState } from '../ui/ErrorState'
import { Select, TextInput } from '../ui/Field'
import { CrossIcon } from '../ui/icons'
import { Exact } from '../ui/Mono'
import { Page } from '../ui/Page'
import { RelativeTime } from '../ui/RelativeTime'
import { Spinner } from '../ui/Spinner'
import { StatusBadge } from '../ui/StatusBadge'
import { lasting } from '../ui/time'
import { ask } from '../wire/api'
import { useBus } from '../wire/bus'
import type { Run } from '../wire/native.generated'
import { Plot } from './Plot'
import { statusOf, tookOf } from './RunList'
import { useTitles } from './titles'
import { bucketsOf, isSpan, matching, spans, totalsOf, type SpanName } from './totals'
import { money, tokens } from './waterfall'

const page = 200
const most = 2000 // runs that are loaded for one view

interface Filters {
  agent: string
  status: string
  project: string
  session: string
  search: string
  span: SpanName
}

// The filters are in the address, so that a filtered list can be shared.
function useFilters() {
  const read = (): Filters => {
    const query = new URLSearchParams(location.search)
    const span = query.get('span') ?? ''
    return {
      agent: query.get('agent') ?? '',
      status: query.get('status') ?? (query.get('open') === '1' ? 'unfinished' : ''),
      project: query.get('project') ?? '',
      session: query.get('session') ?? '',
      search: query.get('search') ?? '',
      span: isSpan(span) ? span : 'week',
    }
  }
  const [filters, set] = useState(read)
  const change = (some: Partial<Filters>) => {
    const next = { ...filters, ...some }
    set(next)
    const query = new URLSearchParams()
    for (const [key, value] of Object.entries(next))
      if (value !== '' && !(key === 'span' && value === 'week')) query.set(key, value)
    history.replaceState(history.state, '', query.size > 0 ? `?${query}` : location.pathname)
  }
  return [filters, change] as const
}

// useRuns loads the runs of a time span, newest first. The first page is reloaded after each event.
function useRuns({ agent, project, session, span }: Filters) {
  const queries = useQueryClient()
  const from = (before: string, signal: AbortSignal) => {
    const query = new URLSearchParams({ limit: String(page) })
    if (agent !== '') query.set('agent', agent)
    if (project !== '') query.set('project', project)
    if (session !== '') query.set('session', session)
    if (before !== '') query.set('before', before)
    return ask<{ runs: Run[] }>('GET', `/api/v1/runs?${query}`, { signal }).then((answer) => answer.runs)
  }
  const which = { agent, project, session }
  const head = useQuery({ queryKey: ['runs', 'head', which], queryFn: ({ signal }) => from('', signal) })
  const rest = useQuery({
    queryKey: ['runs', 'rest', which, span],
    queryFn: async ({ signal }) => {
      const { length } = spans[span]
      const oldest = length === undefined ? 0 : Date.now() - length
      const all: Run[] = []
      let before = ''
      for (;;) {
        const some = await from(before, signal)
        all.push(...some)
        const last = some.at(-1)
        if (some.length < page || last === undefined || all.length >= most) return all
        if (Date.parse(last.started_at) < oldest) return all
        before = last.started_at
      }
    },
  })
  useBus(
    ['run', 'ask_user', 'widget_resolved'],
    () => void queries.invalidateQueries({ queryKey: ['runs', 'head', which] }),
  )
  const runs = useMemo(() => {
    const { length } = spans[span]
    const oldest = length === undefined ? 0 : Date.now() - length
    const byId = new Map([...(rest.data ?? []), ...(head.data ?? [])].map((run) => [run.id, run]))
    return [...byId.values()]
      .filter((run) => Date.parse(run.started_at) >= oldest)
      .sort((a, b) => Date.parse(b.started_at) - Date.parse(a.started_at))
  }, [head.data, rest.data, span])
  const again = () => void queries.refetchQueries({ queryKey: ['runs'], type: 'active' })
  return { runs, loaded: rest.data !== undefined, cut: runs.length >= most, error: rest.error ?? head.error, again }
}

export function RunsPage() {
  const [filters, change] = useFilters()
  const { runs, loaded, cut, error, again } = useRuns(filters)
  const titleOf = useTitles(runs.map(({ root }) => root))
  const search = useDeferredValue(filters.search)
  const shown = useMemo(
    () => matching(runs, filters.status, search, (run) => titleOf(run.root) ?? ''),
    [runs, filters.status, search, titleOf],
  )
  const narrowed =
    filters.agent !== '' ||
    filters.session !== '' ||
    filters.status !== '' ||
    filters.project !== '' ||
    filters.search !== ''
  return (
    <Page
      wide
      title="Runs"
      lead="A run is everything that an agent does for one message or timer. The newest are first."
    >
      <FilterBar filters={filters} change={change} />
      {error !== null && (
        <ErrorState what="The list may be out of date." error={error} retry={again} />
      )}
      {!loaded ? (
        error === null && <Spinner word="Loading runs…" />
      ) : (
        <>
          <Sums runs={shown} span={filters.span} />
          {cut && <p className="text-sm text-ink-soft">Only the newest {most} runs of this time are counted here.</p>}
          {shown.length > 0 ? (
            <Table runs={shown} titleOf={(run) => titleOf(run.root)} />
          ) : narrowed ? (
            <EmptyState
              title="No run matches"
              action={
                <Button onClick={() => change({ agent: '', session: '', status: '', project: '', search: '' })}>
                  Remove all filters
                </Button>
              }
            >
              No run of this time matches these filters.
            </EmptyState>
          ) : (
            <EmptyState
              title="No runs"
              action={
                <Link to="/" className={buttonLook('primary')}>
                  Start a conversation
                </Link>
              }
            >
              A run appears here when an agent gets a message or a timer fires.
            </EmptyState>
          )}
        </>
      )}
    </Page>
  )
}

const statuses = [
  'unfinished',
  'waiting',
  'running',
  'completed',
  'failed',
  'cancelled',
  'denied',
  'interrupted',
  'halted',
]

function FilterBar({ filters, change }: { filters: Filters; change: (some: Partial<Filters>) => void }) {
  const agents = useQuery(agentsQuery).data?.agents ?? []
  const projects = useQuery(projectsQuery).data ?? []
  const names = [...new Set([...agents.map((one) => one.name), ...(filters.agent === '' ? [] : [filters.agent])])]
  return (
    <div role="group" aria-label="Filters" className="flex flex-wrap items-center gap-2">
      <TextInput
        type="search"
        aria-label="Search runs"
        placeholder="Search runs"
        value={filters.search}
        onChange={(event) => change({ search: event.target.value })}
        className="!w-52 max-sm:!w-full"
      />
      <Select
        aria-label="Agent"
        className="max-sm:grow"
        value={filters.agent}
        onChange={(event) => change({ agent: event.target.value })}
      >
        <option value="">All agents</option>
        {names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </Select>
      <Select
        aria-label="Status"
        className="max-sm:grow"
        value={filters.status}
        onChange={(event) => change({ status: event.target.value })}
      >
        <option value="">Any status</option>
        {statuses.map((status) => (
          <option key={status}>{status}</option>
        ))}
      </Select>
      <Select
        aria-label="Time"
        className="max-sm:grow"
        value={filters.span}
        onChange={(event) => change({ span: event.target.value as SpanName })}
      >
        {Object.entries(spans).map(([key, { name }]) => (
          <option key={key} value={key}>
            {name}
          </option>
        ))}
      </Select>
      {projects.length > 1 && (
        <Select
          aria-label="Project"
          className="max-sm:grow"
          value={filters.project}
          onChange={(event) => change({ project: event.target.value })}
        >
          <option value="">All projects</option>
          {projects.map((project) => (
            <option key={project.id} value={project.id}>
              {project.name}
            </option>
          ))}
        </Select>
      )}
      {filters.session !== '' && (
        <Button onClick={() => change({ session: '' })}>
          Session {filters.session.slice(0, 8)}… <CrossIcon /> <span className="sr-only">Remove this filter</span>
        </Button>
      )}
    </div>
  )
}

function Sums({ runs, span }: { runs: Run[]; span: SpanName }) {
  const totals = totalsOf(runs)
  const buckets = bucketsOf(runs, span, Date.now())
  const name = (at: number) =>
    new Date(at).toLocaleString(undefined, {
      day: 'numeric',
      month: 'short',
      ...(span === 'day' || span === 'week' ? { hour: '2-digit', minute: '2-digit' } : {}),
    })
  return (
    <section aria-label="Totals" className="grid gap-3 md:grid-cols-3">
      <Plot
        name={totals.failed > 0 ? `Runs, ${totals.failed} failed` : 'Runs'}
        total={totals.runs.toLocaleString()}
        bars={buckets.map((bucket) => ({
          name: name(bucket.start),
          value: bucket.runs,
          bad: bucket.failed,
          text: `${bucket.runs} runs`,
        }))}
      />
      <Plot
        name="Cost"
        total={totals.cost > 0 ? dollars(totals.cost) : '–'}
        bars={buckets.map((bucket) => ({
          name: name(bucket.start),
          value: bucket.cost,
          text: dollars(bucket.cost),
        }))}
      />
      <dl className="grid grid-cols-2 content-center gap-x-4 gap-y-2 rounded-lg border border-line bg-raised px-4 py-3">
        {(
          [
            ['Input tokens', short(totals.input)],
            ['Output tokens', short(totals.output)],
            ['Median duration', totals.median === undefined ? '–' : lasting(totals.median)],
            ['Cost per run', totals.cost > 0 ? dollars(totals.cost / totals.runs) : '–'],
          ] as const
        ).map(([what, value]) => (
          <div key={what}>
            <dt className="text-xs text-ink-soft">{what}</dt>
            <dd className="text-sm tabular-nums">{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

const few = 100 // rows, until the user asks for more

function Table({ runs, titleOf }: { runs: Run[]; titleOf: (run: Run) => string | undefined }) {
  const [count, setCount] = useState(few)
  const [chosen, setChosen] = useState<string[]>([])
  const choose = (id: string) =>
    setChosen(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen.slice(-1), id])
  return (
    <div className="flex flex-col gap-3">
      <div className="flex min-h-9 items-center justify-between gap-3 text-sm">
        <h2 className="font-semibold">{runs.length === 1 ? '1 run' : `${runs.length.toLocaleString()} runs`}</h2>
        {chosen.length === 2 ? (
          <Link
            to="/runs/compare"
            search={{ a: chosen[0], b: chosen[1] } as never}
            className={buttonLook('primary')}
          >
            Compare the two runs
          </Link>
        ) : (
          <span className="text-ink-soft">
            {chosen.length === 0 ? 'Choose two runs to compare them.' : 'Choose one more run to compare with.'}
          </span>
        )}
      </div>
      <div className="overflow-x-auto rounded-lg border border-line">
        <table className="w-full text-left text-sm">
          <thead className="bg-raised text-xs text-ink-soft">
            <tr className="h-9 border-b border-line">
              <th scope="col" className="w-8 py-2 pl-3">
                <span className="sr-only">Compare</span>
              </th>
              <th scope="col" className="px-3 font-medium">
                Status
              </th>
              <th scope="col" className="px-3 font-medium">
                Conversation
              </th>
              <th scope="col" className="hidden px-3 font-medium sm:table-cell">
                Agent
              </th>
              <th scope="col" className="hidden px-3 text-right font-medium md:table-cell">
                Duration
              </th>
              <th scope="col" className="hidden px-3 text-right font-medium lg:table-cell">
                Tokens
              </th>
              <th scope="col" className="hidden px-3 text-right font-medium md:table-cell">
                Cost
              </th>
              <th scope="col" className="px-3 text-right font-medium">
                Started
              </th>
            </tr>
          </thead>
          <tbody>
            {runs.slice(0, count).map((run) => (
              <Row
                key={run.id}
                run={run}
                title={titleOf(run)}
                chosen={chosen.includes(run.id)}
                choose={() => choose(run.id)}
              />
            ))}
          </tbody>
        </table>
      </div>
      {runs.length > count && (
        <Button className="self-center" onClick={() => setCount(count + few)}>
          Show {Math.min(few, runs.length - count)} more of {runs.length}
        </Button>
      )}
    </div>
  )
}

function Row({ run, title, chosen, choose }: { run: Run; title?: string; chosen: boolean; choose: () => void }) {
  const took = tookOf(run)
  const name = title ?? 'Untitled conversation'
  return (
    <tr className="border-b border-line last:border-b-0 hover:bg-raised">
      <td className="pl-3">
        <input
          type="checkbox"
          aria-label={`Compare the run of ${run.agent} in ${name}`}
          checked={chosen}
          onChange={choose}
          className="size-4 align-middle accent-accent"
        />
      </td>
      <td className="px-3 py-2">
        <StatusBadge status={statusOf(run)} />
      </td>
      <td className="max-w-0 px-3 sm:w-2/5">
        <Link
          to="/runs/$id"
          params={{ id: run.id }}
          className="block truncate font-medium underline-offset-4 hover:underline"
        >
          <bdi>
            <Exact>{name}</Exact>
          </bdi>
        </Link>
        {run.message !== undefined && (
          <span className="block truncate text-xs text-ink-soft">
            <Exact>{run.message}</Exact>
          </span>
        )}
      </td>
      <td className="hidden whitespace-nowrap px-3 sm:table-cell">
        <span className="inline-flex items-center gap-2">
          <AgentGlyph name={run.agent} />
          {run.agent}
        </span>
        {run.parent !== undefined && <span className="text-xs text-ink-soft"> sub-agent</span>}
      </td>
      <td className="hidden whitespace-nowrap px-3 text-right text-xs tabular-nums text-ink-soft md:table-cell">
        {took === undefined ? 'unfinished' : lasting(took)}
      </td>
      <td className="hidden whitespace-nowrap px-3 text-right text-xs tabular-nums text-ink-soft lg:table-cell">
        {tokens(run.usage) ?? '–'}
      </td>
      <td className="hidden whitespace-nowrap px-3 text-right text-xs tabular-nums text-ink-soft md:table-cell">
        {money(run.usage) ?? '–'}
      </td>
      <td className="whitespace-nowrap px-3 text-right">
        <RelativeTime at={run.started_at} className="text-xs text-ink-soft" />
      </td>
    </tr>
  )
}
