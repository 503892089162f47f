import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState, type FormEvent, type ReactNode } from 'react'
import { Button } from '../ui/Button'
import { ErrorState } from '../ui/ErrorState'
import { Field, TextArea } from '../ui/Field'
import { Exact, Mono } from '../ui/Mono'
import { Box, Section } from '../ui/Page'
import { RelativeTime } from '../ui/RelativeTime'
import { Spinner } from '../ui/Spinner'
import { StatusBadge } from '../ui/StatusBadge'
import { toast } from '../ui/toast'
import { ask, Problem } from '../wire/api'
import { useBus } from '../wire/bus'
import { useMe } from '../wire/me'
import type { Effect, Timer } from '../wire/native.generated'

// What agents do without being asked: a mission that they are reminded of when
// they are idle, follow-ups that they have set themselves, and messages that are
// owed to somebody. A server that has none of it answers 404, and that is said.

interface Mission {
  text: string
  created_at: number // seconds
  active: boolean
  agents?: { id: string; idle_prompt: string | null; idle_interval_secs: number | null }[]
  ended_at?: number
  note?: string
}

export function Autonomy() {
  const queries = useQueryClient()
  useBus(['run'], () => void queries.invalidateQueries({ queryKey: ['autonomy'] }))
  return (
    <>
      <Section title="Mission">
        <MissionSection />
      </Section>
      <Section title="Follow-ups">
        <Timers />
      </Section>
      <Section title="Deliveries">
        <Effects />
      </Section>
    </>
  )
}

// Fetched shows what was fetched, or why not.
function Fetched<T>({ path, name, children }: { path: string; name: string; children: (data: T) => ReactNode }) {
  const { data, error, isPending, refetch } = useQuery({ queryKey: ['autonomy', path], queryFn: ({ signal }) => ask<T>('GET', path, { signal }) })
  if (isPending) return <Spinner word={`Fetching ${name}…`} />
  if (error instanceof Problem && error.status === 404) return <p className="text-sm text-ink-soft">This is not available on this server.</p>
  if (data === undefined) return <ErrorState what={`The ${name} could not be fetched.`} error={error} retry={() => void refetch()} />
  return children(data)
}

function useAct(method: 'POST' | 'DELETE', done: string) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: ({ path, body }: { path: string; body?: unknown }) => ask(method, path, { body }),
    onSuccess: () => toast(done),
    onError: (error) => toast(error.message, 'failed'),
    onSettled: () => queries.invalidateQueries({ queryKey: ['autonomy'] }),
  })
}

function MissionSection() {
  const { may } = useMe()
  const end = useAct('DELETE', 'The mission has ended.')
  return (
    <Fetched<Mission> path="/api/mission" name="mission">
      {(mission) =>
        mission.active ? (
          <Box className="flex flex-col gap-3 p-4">
            <p className="whitespace-pre-wrap break-words">
              <Exact>{mission.text}</Exact>
            </p>
            {mission.note !== undefined && <p className="text-sm text-waiting">{mission.note}</p>}
            <ul className="flex flex-col gap-1 text-sm text-ink-soft">
              {mission.agents?.map((agent) => (
                <li key={agent.id}>
                  <Mono>{agent.id}</Mono> {agent.idle_interval_secs !== null && `every ${agent.idle_interval_secs} s while idle`}
                </li>
              ))}
            </ul>
            <p className="text-xs text-ink-soft">
              Since <RelativeTime at={mission.created_at * 1000} />
            </p>
            {may('agents:write') && (
              <div>
                <Button busy={end.isPending} onClick={() => end.mutate({ path: '/api/mission' })}>
                  End the mission
                </Button>
              </div>
            )}
          </Box>
        ) : may('agents:write') ? (
          <SetMission />
        ) : (
          <p className="text-sm text-ink-soft">There is none.</p>
        )
      }
    </Fetched>
  )
}

function SetMission() {
  const [text, setText] = useState('')
  const set = useAct('POST', 'The mission is set.')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (text.trim() !== '') set.mutate({ path: '/api/mission', body: { text: text.trim() } })
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-3">
      <Field label="What agents should work towards" hint="Agents that have an idle prompt are reminded of it whenever they have nothing to do.">
        {(control) => <TextArea {...control} rows={3} value={text} onChange={(event) => setText(event.target.value)} />}
      </Field>
      <div>
        <Button type="submit" kind="primary" disabled={text.trim() === ''} busy={set.isPending}>
          Set the mission
        </Button>
      </div>
    </form>
  )
}

function Timers() {
  const { may } = useMe()
  const cancel = useAct('DELETE', 'The follow-up is taken back.')
  return (
    <Fetched<{ timers: Timer[] }> path="/api/v1/timers?limit=50" name="follow-ups">
      {({ timers }) =>
        timers.length === 0 ? (
          <p className="text-sm text-ink-soft">None. An agent that means to come back to something says so here.</p>
        ) : (
          <Lines>
            {timers.map((timer) => (
              <Line
                key={timer.id}
                status={<StatusBadge status={timer.status === 'pending' ? 'waiting' : timer.status === 'promoted' ? 'done' : 'cancelled'}>{timer.status === 'promoted' ? 'came' : timer.status}</StatusBadge>}
                session={timer.session}
                at={timer.fire_at}
                action={
                  timer.status === 'pending' &&
                  may('agents:message') && (
                    <Button small kind="quiet" busy={cancel.isPending} onClick={() => cancel.mutate({ path: `/api/v1/timers/${timer.id}` })}>
                      Take back
                    </Button>
                  )
                }
              >
                <strong className="font-medium">{timer.agent}</strong> <Exact>{timer.message ?? timer.reason}</Exact>
              </Line>
            ))}
          </Lines>
        )
      }
    </Fetched>
  )
}

function Effects() {
  return (
    <Fetched<{ effects: Effect[] }> path="/api/v1/effects?limit=50" name="deliveries">
      {({ effects }) =>
        effects.length === 0 ? (
          <p className="text-sm text-ink-soft">None. What is owed to a client that was away is here until it has it.</p>
        ) : (
          <Lines>
            {effects.map((effect) => (
              <Line key={effect.id} status={<StatusBadge status={effect.status === 'pending' ? 'waiting' : effect.status}>{effect.status}</StatusBadge>} session={effect.session} at={effect.created_at}>
                <Mono>{effect.type}</Mono> {effect.attempts > 0 && <span className="text-ink-soft">tried {effect.attempts} times</span>} {effect.why}
              </Line>
            ))}
          </Lines>
        )
      }
    </Fetched>
  )
}

function Lines({ children }: { children: ReactNode }) {
  return <ul className="overflow-hidden rounded-lg border border-line">{children}</ul>
}

function Line({ status, session, at, action, children }: { status: ReactNode; session: string; at: string; action?: ReactNode; children: ReactNode }) {
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-1 border-b border-line bg-raised px-4 py-2 text-sm last:border-b-0">
      {status}
      <span className="min-w-0 grow basis-56 break-words">{children}</span>
      <Link to="/chat/$session" params={{ session }} className="text-xs text-accent underline-offset-2 hover:underline">
        Conversation
      </Link>
      <RelativeTime at={at} className="text-xs text-ink-soft" />
      {action}
    </li>
  )
}
