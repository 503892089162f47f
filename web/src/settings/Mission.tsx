import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState, type FormEvent } from 'react'
import { agentsIn } from '../agents/queries'
import { ofProject } from '../files/queries'
import { Button } from '../ui/Button'
import { Field, TextArea, TextInput } from '../ui/Field'
import { WarningIcon } from '../ui/icons'
import { Exact, Mono } from '../ui/Mono'
import { Box } from '../ui/Page'
import { RelativeTime } from '../ui/RelativeTime'
import type { Mission as Shown, MissionAgent } from '../wire/bus.generated'
import { ask } from '../wire/api'
import { useMe } from '../wire/me'
import type { MissionInfo } from '../wire/native.generated'
import { Fetched, useAct } from './Fetched'

// Mission is the goal that idle agents are reminded of. There is one at a time in a project; '' is the first project.
export function Mission({ project = '' }: { project?: string }) {
  const { may } = useMe()
  const query = project === '' ? '' : `?${new URLSearchParams({ project_root: project })}`
  return (
    <>
      <Fetched<Shown> path={`/api/mission${query}`} name="mission">
        {(mission) => (
          <>
            {mission.note !== undefined && (
              <p role="note" className="flex items-start gap-2 rounded-md bg-waiting-soft px-3 py-2 text-sm">
                <WarningIcon className="mt-1 shrink-0 text-waiting" />
                <span className="min-w-0 break-words">{mission.note}</span>
              </p>
            )}
            {mission.active ? (
              <Active mission={mission} project={project} may={may('agents:write')} />
            ) : may('agents:write') ? (
              <SetMission project={project} />
            ) : (
              <p className="text-sm text-ink-soft">No mission is set.</p>
            )}
          </>
        )}
      </Fetched>
      <Fetched<{ missions: Shown[] }> path={`/api/missions${query}`} name="earlier missions">
        {({ missions }) => <Earlier missions={missions.filter((one) => !one.active)} />}
      </Fetched>
    </>
  )
}

function Active({ mission, project, may }: { mission: Shown; project: string; may: boolean }) {
  const end = useAct('DELETE', 'The mission has ended.')
  return (
    <Box className="flex flex-col gap-3 p-4">
      <p className="whitespace-pre-wrap break-words">
        <Exact>{mission.text}</Exact>
      </p>
      {mission.agents.length > 0 && (
        <ul className="flex flex-col gap-1 text-sm text-ink-soft">
          {mission.agents.map((agent) => (
            <li key={agent.id}>
              <Mono>{agent.id}</Mono> {agent.idle_interval_secs !== null && `after ${agent.idle_interval_secs} s`}{' '}
              {agent.idle_prompt !== null && <Exact>{agent.idle_prompt}</Exact>}
            </li>
          ))}
        </ul>
      )}
      <Prompted project={project} />
      <div className="flex flex-wrap items-center gap-4">
        {may && (
          <Button busy={end.isPending} onClick={() => end.mutate({ path: '/api/mission', body: inBody(project) })}>
            End the mission
          </Button>
        )}
        <span className="text-xs text-ink-soft">
          Set <RelativeTime at={mission.created_at * 1000} />
        </span>
      </div>
    </Box>
  )
}

// Prompted lists the conversations in which the active mission has prompted agents, how often, and when last.
function Prompted({ project }: { project: string }) {
  const { data } = useQuery({
    queryKey: ['autonomy', 'prompted', project],
    queryFn: ({ signal }) =>
      ask<{ missions: MissionInfo[] }>('GET', `/api/v1/missions${ofProject(project)}`, { signal }),
    select: ({ missions }) => missions.find((one) => one.ended_at === undefined)?.prompted ?? [],
  })
  if (data === undefined || data.length === 0) return null
  return (
    <ul aria-label="Prompted agents" className="flex flex-col gap-1 text-sm text-ink-soft">
      {data.map(({ agent, session, count, last_at }) => (
        <li key={agent + session}>
          <Link to="/chat/$session" params={{ session }} className="text-accent underline underline-offset-2">
            {agent}
          </Link>{' '}
          was prompted {count === 1 ? 'once' : `${count} times`}, last <RelativeTime at={last_at} />
        </li>
      ))}
    </ul>
  )
}

function Earlier({ missions }: { missions: Shown[] }) {
  if (missions.length === 0) return null
  return (
    <details className="text-sm">
      <summary className="cursor-pointer text-ink-soft">
        {missions.length === 1 ? '1 earlier mission' : `${missions.length} earlier missions`}
      </summary>
      <ul className="mt-2 flex flex-col gap-2">
        {missions.map((mission) => (
          <li key={mission.created_at} className="flex flex-wrap justify-between gap-x-4">
            <span className="min-w-0 break-words">
              <Exact>{mission.text}</Exact>
            </span>
            {mission.ended_at !== undefined && (
              <span className="text-xs text-ink-soft">
                ended <RelativeTime at={mission.ended_at * 1000} />
              </span>
            )}
          </li>
        ))}
      </ul>
    </details>
  )
}

// inBody names the project in the body of a request.
function inBody(project: string): object {
  return project === '' ? {} : { project_root: project }
}

// The settings of one agent, as typed.
interface Choice {
  prompt: string
  minutes: string
}

function SetMission({ project }: { project: string }) {
  const [text, setText] = useState('')
  const [chosen, setChosen] = useState<Record<string, Choice>>({})
  const agents = useQuery(agentsIn(project)).data?.agents ?? []
  const set = useAct('POST', 'The mission is set.')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (text.trim() === '') return
    set.mutate({ path: '/api/mission', body: { text: text.trim(), agents: choices(chosen), ...inBody(project) } })
  }
  const choose = (id: string, choice: Choice | undefined) => {
    const next = { ...chosen }
    if (choice === undefined) delete next[id]
    else next[id] = choice
    setChosen(next)
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-3">
      <Field
        label="Goal of the agents"
        hint="Agents with an idle prompt are reminded of the mission when they are idle."
      >
        {(control) => <TextArea {...control} rows={3} value={text} onChange={(event) => setText(event.target.value)} />}
      </Field>
      {text.trim() !== '' && (
        <fieldset className="flex flex-col gap-2">
          <legend className="mb-1 text-sm font-medium">
            Idle prompts for this mission, instead of those in the definitions of the agents
          </legend>
          {agents.map(({ id }) => (
            <Choosing key={id} id={id} choice={chosen[id]} choose={(choice) => choose(id, choice)} />
          ))}
        </fieldset>
      )}
      <div>
        <Button type="submit" kind="primary" disabled={text.trim() === ''} busy={set.isPending}>
          Set the mission
        </Button>
      </div>
    </form>
  )
}

function Choosing({
  id,
  choice,
  choose,
}: {
  id: string
  choice: Choice | undefined
  choose: (choice: Choice | undefined) => void
}) {
  return (
    <div className="flex flex-wrap items-center gap-x-4 gap-y-2 text-sm">
      <label className="flex w-40 items-center gap-2">
        <input
          type="checkbox"
          className="accent-accent"
          checked={choice !== undefined}
          onChange={(event) => choose(event.target.checked ? { prompt: '', minutes: '10' } : undefined)}
        />
        {id}
      </label>
      {choice !== undefined && (
        <>
          <TextInput
            aria-label={`Idle prompt of ${id}`}
            placeholder="Message to the agent when it is idle"
            className="min-w-48 flex-1"
            value={choice.prompt}
            onChange={(event) => choose({ ...choice, prompt: event.target.value })}
          />
          <label className="flex items-center gap-2 text-ink-soft">
            after
            <input
              type="number"
              min={1}
              max={1440}
              aria-label={`Minutes until ${id} is prompted`}
              className="w-20 rounded-md border border-line-strong bg-paper px-2 py-1.5 text-ink"
              value={choice.minutes}
              onChange={(event) => choose({ ...choice, minutes: event.target.value })}
            />
            min
          </label>
        </>
      )}
    </div>
  )
}

// choices returns the settings to send; null means that the definition applies.
export function choices(chosen: Record<string, Choice>): MissionAgent[] {
  return Object.entries(chosen).map(([id, { prompt, minutes }]) => {
    const seconds = Math.round(Number(minutes) * 60)
    return { id, idle_prompt: prompt.trim() || null, idle_interval_secs: seconds > 0 ? seconds : null }
  })
}
