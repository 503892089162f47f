import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useMemo, type ReactNode } from 'react'
import { buttonLook } from '../ui/Button'
import { classes } from '../ui/classes'
import { EmptyState } from '../ui/EmptyState'
import { ErrorState } from '../ui/ErrorState'
import { Exact, Mono } from '../ui/Mono'
import { Page, Section } from '../ui/Page'
import { RelativeTime } from '../ui/RelativeTime'
import { Spinner } from '../ui/Spinner'
import { StatusBadge } from '../ui/StatusBadge'
import { lasting } from '../ui/time'
import { ask } from '../wire/api'
import { readLog } from '../wire/log'
import type { LogEvent } from '../wire/log.generated'
import type { Run } from '../wire/native.generated'
import { modelCalls } from './calls'
import { align, stepsOf, type Step } from './compare'
import { pretty } from './ModelCalls'
import { statusOf, tookOf } from './RunList'
import { useTitles } from './titles'
import { money, usageOf, waterfall } from './waterfall'

interface Loaded {
  run: Run
  log: LogEvent[]
}

function useRun(id: string) {
  return useQuery({
    queryKey: ['runs', id, 'whole'],
    queryFn: async ({ signal }): Promise<Loaded> => {
      const run = await ask<Run>('GET', `/api/v1/runs/${encodeURIComponent(id)}`, { signal })
      // The input is right before the run.
      const until = (event: LogEvent) => event.type === 'RunFinished' && event.run === run.run
      return { run, log: await readLog(run.session, { after: Math.max(0, run.run - 2), until, signal }) }
    },
    enabled: id !== '',
  })
}

// ComparePage shows two runs side by side. The address names them.
export function ComparePage() {
  const query = new URLSearchParams(location.search)
  const name = (key: string) => (query.get(key) ?? '').replaceAll('"', '')
  const left = useRun(name('a'))
  const right = useRun(name('b'))
  if (name('a') === '' || name('b') === '')
    return (
      <Page title="Compare runs">
        <EmptyState title="Two runs are needed" action={<AllRuns />}>
          Choose two runs in the list of runs.
        </EmptyState>
      </Page>
    )
  const error = left.error ?? right.error
  return (
    <Page wide title="Compare runs" actions={<AllRuns />}>
      {error !== null ? (
        <ErrorState
          what="The runs could not be loaded."
          error={error}
          retry={() => void Promise.all([left.refetch(), right.refetch()])}
        />
      ) : left.data === undefined || right.data === undefined ? (
        <Spinner word="Loading the runs…" />
      ) : (
        <Both left={left.data} right={right.data} />
      )}
    </Page>
  )
}

function AllRuns() {
  return (
    <Link to="/runs" className={buttonLook()}>
      All runs
    </Link>
  )
}

function Both({ left, right }: { left: Loaded; right: Loaded }) {
  const pairs = useMemo(
    () => align(stepsOf(left.log, left.run.run), stepsOf(right.log, right.run.run)),
    [left, right],
  )
  const a = figures(left)
  const b = figures(right)
  const titleOf = useTitles([left.run.root, right.run.root])
  return (
    <>
      <div className="overflow-x-auto rounded-lg border border-line">
        <table className="w-full text-left text-sm">
          <thead className="bg-raised">
            <tr className="border-b border-line">
              <td className="px-3 py-2" />
              {[left, right].map(({ run }, at) => (
                <th key={at} scope="col" className="px-3 py-2 font-medium">
                  <Link to="/runs/$id" params={{ id: run.id }} className="underline-offset-4 hover:underline">
                    <Exact>{titleOf(run.root) ?? 'Untitled conversation'}</Exact>
                  </Link>
                  <span className="block text-xs font-normal text-ink-soft">
                    {run.agent}, <RelativeTime at={run.started_at} />
                  </span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {a.map(([name, what], at) => (
              <tr key={name} className="border-b border-line last:border-b-0">
                <th scope="row" className="px-3 py-1.5 font-normal text-ink-soft">
                  {name}
                </th>
                <td className="px-3 tabular-nums">{what}</td>
                <td className="px-3 tabular-nums">{b[at]![1]}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Section title="Steps">
        <ol className="flex flex-col gap-2">
          {pairs.map((pair, at) => (
            <li key={at} className="grid gap-2 md:grid-cols-2">
              <Side step={pair.left} other={pair.right} same={pair.same} />
              <Side step={pair.right} other={pair.left} same={pair.same} />
            </li>
          ))}
        </ol>
      </Section>
    </>
  )
}

function figures({ run, log }: Loaded): [string, ReactNode][] {
  const fall = waterfall(log, run.run)
  const calls = modelCalls(log, run.run)
  const usage = run.usage ?? usageOf(fall)
  const took = tookOf(run)
  const models = [...new Set(calls.map((call) => call.answeredBy ?? call.model ?? 'default model'))]
  const first = calls.find((call) => call.first !== undefined)
  return [
    ['Status', <StatusBadge key="status" status={statusOf(run)} />],
    ['Model', models.join(', ') || '–'],
    ['Duration', took === undefined ? 'unfinished' : lasting(took)],
    ['First token', first === undefined ? '–' : lasting(first.first! - first.start)],
    ['Model calls', String(calls.length)],
    ['Tool calls', String(fall.bars.filter((bar) => bar.kind === 'tool').length)],
    ['Input tokens', (usage.input ?? 0).toLocaleString()],
    ['Output tokens', (usage.output ?? 0).toLocaleString()],
    ['Cost', money(usage) ?? '–'],
  ]
}

function Side({ step, other, same }: { step?: Step; other?: Step; same: boolean }) {
  if (step === undefined)
    return (
      <div className="hidden rounded-lg border border-dashed border-line px-3 py-2 text-xs text-ink-soft md:block">
        Only in the other run
      </div>
    )
  return (
    <div className={classes('min-w-0 rounded-lg border px-3 py-2', same ? 'border-line' : 'border-waiting')}>
      <p className="mb-1 flex items-center justify-between gap-2 text-xs text-ink-soft">
        <span className={classes(step.tool && 'font-mono')}>{step.name}</span>{' '}
        {same ? 'same' : other === undefined ? 'only in this run' : 'differs'}
      </p>
      <Mono block className="max-h-60 text-xs">
        {pretty(step.detail)}
      </Mono>
    </div>
  )
}
