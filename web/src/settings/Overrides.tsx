import { useMutation, useQueries, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { agentsIn } from '../agents/queries'
import { ofProject } from '../files/queries'
import { Button } from '../ui/Button'
import { ErrorState } from '../ui/ErrorState'
import { Select, TextInput } from '../ui/Field'
import { Exact } from '../ui/Mono'
import { Box, Row, Rows } from '../ui/Page'
import { Spinner } from '../ui/Spinner'
import { toast } from '../ui/toast'
import { ask } from '../wire/api'
import { useMe } from '../wire/me'
import type { IdleChoice } from '../wire/native.generated'

const path = (agent: string, project: string) =>
  `/api/v1/agents/${encodeURIComponent(agent)}/override${ofProject(project)}`

// Overrides replace the idle prompts of agents, with or without a mission.
export function Overrides({ project }: { project: string }) {
  const { may } = useMe()
  const agents = useQuery(agentsIn(project))
  const names = agents.data?.agents.map(({ id }) => id) ?? []
  const overrides = useQueries({
    queries: names.map((id) => ({
      queryKey: ['overrides', project, id],
      queryFn: ({ signal }: { signal: AbortSignal }) => ask<IdleChoice>('GET', path(id, project), { signal }),
    })),
  })
  const failed = overrides.find((one) => one.error !== null)
  if (agents.isPending) return <Spinner word="Loading agents…" />
  if (agents.data === undefined || failed !== undefined)
    return (
      <ErrorState
        what="The idle prompts could not be loaded."
        error={agents.error ?? failed?.error}
        retry={() => void (agents.data === undefined ? agents.refetch() : failed?.refetch())}
      />
    )
  const set = names.flatMap((id, at) => {
    const { idle_prompt, idle_interval_secs } = overrides[at]?.data ?? {}
    if (idle_prompt === undefined && idle_interval_secs === undefined) return []
    return [{ id, idle_prompt, idle_interval_secs }]
  })
  return (
    <>
      <p className="-mt-2 text-sm text-ink-soft">
        An override replaces the idle prompt in the definition of an agent, from its next idle time on.
      </p>
      {set.length > 0 && (
        <Rows label="Overrides">
          {set.map((one) => (
            <Row key={one.id}>
              <span className="font-medium">{one.id}</span>
              <span className="min-w-0 grow basis-48 break-words text-ink-soft">
                <Exact>{one.idle_prompt ?? 'the prompt of its definition'}</Exact>
                {one.idle_interval_secs !== undefined && `, after ${Math.round(one.idle_interval_secs / 60)} min`}
              </span>
              {may('agents:write') && <Reset agent={one.id} project={project} />}
            </Row>
          ))}
        </Rows>
      )}
      {may('agents:write') ? (
        <Edit agents={names} project={project} />
      ) : (
        set.length === 0 && <p className="text-sm text-ink-soft">No agent has an override.</p>
      )}
    </>
  )
}

// A Chosen is the value to set; null: the definition applies.
interface Chosen {
  idle_prompt: string | null
  idle_interval_secs: number | null
}

function useSet(project: string, done: string) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: ({ agent, choice }: { agent: string; choice: Chosen }) =>
      ask<IdleChoice>('POST', path(agent, project), { body: choice }),
    onSuccess: (now, { agent }) => {
      queries.setQueryData(['overrides', project, agent], now)
      toast(done)
    },
  })
}

function Reset({ agent, project }: { agent: string; project: string }) {
  const reset = useSet(project, 'The definition of the agent applies again.')
  return (
    <Button
      small
      aria-label={`Reset the override of ${agent}`}
      busy={reset.isPending}
      onClick={() => reset.mutate({ agent, choice: { idle_prompt: null, idle_interval_secs: null } })}
    >
      Reset
    </Button>
  )
}

function Edit({ agents, project }: { agents: string[]; project: string }) {
  const [agent, setAgent] = useState(agents[0] ?? '')
  const [prompt, setPrompt] = useState('')
  const [minutes, setMinutes] = useState('10')
  const save = useSet(project, 'The override is set.')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const seconds = Math.round(Number(minutes) * 60)
    save.mutate(
      { agent, choice: { idle_prompt: prompt.trim() || null, idle_interval_secs: seconds > 0 ? seconds : null } },
      { onSuccess: () => setPrompt('') },
    )
  }
  return (
    <form onSubmit={submit}>
      <Box className="flex flex-col gap-3 p-4">
        <div className="flex flex-wrap items-center gap-2 text-sm">
          <Select aria-label="Agent" value={agent} onChange={(event) => setAgent(event.target.value)}>
            {agents.map((id) => (
              <option key={id}>{id}</option>
            ))}
          </Select>
          <TextInput
            aria-label="Idle prompt"
            placeholder="Message to the agent when it is idle"
            className="min-w-48 flex-1"
            value={prompt}
            onChange={(event) => setPrompt(event.target.value)}
          />
          <label className="flex items-center gap-2 text-ink-soft">
            after
            <TextInput
              type="number"
              min={1}
              max={1440}
              className="w-20"
              aria-label="Minutes"
              value={minutes}
              onChange={(event) => setMinutes(event.target.value)}
            />
            min
          </label>
          <Button type="submit" busy={save.isPending} disabled={prompt.trim() === '' || agent === ''}>
            Set the override
          </Button>
        </div>
        {save.error !== null && <ErrorState what="The override was not set." error={save.error} />}
      </Box>
    </form>
  )
}
