import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { searchFor, useNamedProject } from '../files/namedProject'
import { RunList } from '../runs/RunList'
import { AgentGlyph } from '../ui/AgentGlyph'
import { Button, buttonLook } from '../ui/Button'
import { Confirm } from '../ui/Confirm'
import { EmptyState } from '../ui/EmptyState'
import { ErrorState } from '../ui/ErrorState'
import { PencilIcon, PlayIcon, StopIcon, TrashIcon } from '../ui/icons'
import { Mono } from '../ui/Mono'
import { Box, Page, Section } from '../ui/Page'
import { Spinner } from '../ui/Spinner'
import { toast } from '../ui/toast'
import { Problem } from '../wire/api'
import { useMe } from '../wire/me'
import type { AgentDetail } from '../wire/native.generated'
import { AgentChat } from './AgentChat'
import { AgentStatus } from './AgentStatus'
import { Definition } from './Definition'
import { MakeAgent } from './MakeAgent'
import { agentQuery, useAgentsLive, useDeleteAgent, useSetAgent } from './queries'

export function AgentPage() {
  const { id } = useParams({ from: '/agents/$id' })
  const project = useNamedProject()
  const { data: agent, error, isPending, refetch } = useQuery(agentQuery(id, project))
  useAgentsLive()
  if (isPending)
    return (
      <Page title={id}>
        <Spinner word="Loading the agent…" />
      </Page>
    )
  if (agent === undefined && error instanceof Problem && error.status === 404)
    return (
      <Page title={id}>
        <EmptyState
          title="Agent not found"
          action={
            <Link to="/agents" search={searchFor(project)} className={buttonLook()}>
              All agents
            </Link>
          }
        >
          {error.message}
        </EmptyState>
      </Page>
    )
  if (agent === undefined)
    return (
      <Page title={id}>
        <ErrorState what="The agent could not be loaded." error={error} retry={() => void refetch()} />
      </Page>
    )
  return <Shown key={`${project} ${id}`} agent={agent} project={project} />
}

interface AgentProps {
  agent: AgentDetail
  project: string // '' is the first
}

function Shown({ agent, project }: AgentProps) {
  const { may } = useMe()
  return (
    <Page
      wide
      title={
        <>
          <AgentGlyph name={agent.name} large /> {agent.name} <AgentStatus status={agent.status} />
        </>
      }
      lead={agent.description || 'No description.'}
      actions={may('agents:write') ? <Actions agent={agent} project={project} /> : undefined}
    >
      {agent.problem !== undefined && (
        <div
          role="alert"
          className="flex flex-col gap-2 rounded-md border border-failed bg-failed-soft px-4 py-3 text-sm"
        >
          <p className="font-medium">The file of this agent has an error. The agent keeps its last valid definition.</p>
          <Mono block>{agent.problem}</Mono>
        </div>
      )}
      <div className="grid gap-6 lg:grid-cols-[minmax(0,5fr)_minmax(0,4fr)]">
        {may('agents:message') && <Console agent={agent} project={project} />}
        <div className="flex min-w-0 flex-col gap-6">
          <Section title="Definition">
            <Box className="p-4">
              <Definition agent={agent} />
            </Box>
          </Section>
        </div>
      </div>
      <Section title="Recent runs">
        <RunList small agent={agent.name} project={project} limit={8} empty="This agent has no runs that you can see." />
      </Section>
    </Page>
  )
}

// Console is the debug console, or the reason why there is none. It is not
// mounted for an agent that is not running: the server would refuse its socket.
function Console({ agent, project }: AgentProps) {
  if (agent.status === 'running') return <AgentChat agentId={agent.id} project={project} />
  return (
    <section
      aria-label="Debug console"
      className="flex min-h-48 flex-col rounded-lg border border-dashed border-line-strong"
    >
      <EmptyState title={agent.status === 'stopped' ? 'This agent is stopped' : 'This agent cannot be reached'}>
        {agent.status === 'stopped'
          ? 'Start the agent to use the debug console.'
          : 'The agent runs in another program, which does not respond. The debug console returns when it does.'}
      </EmptyState>
    </section>
  )
}

function Actions({ agent, project }: AgentProps) {
  const set = useSetAgent(agent.id, project)
  const remove = useDeleteAgent(agent.id)
  const navigate = useNavigate()
  const [deleting, setDeleting] = useState(false)
  const [changing, setChanging] = useState(false)
  const to = agent.status === 'stopped' ? 'start' : 'stop'
  const told = { onError: (error: Error) => toast(error.message, 'failed') }
  return (
    <>
      {agent.made && (
        <>
          <Button kind="quiet" onClick={() => setDeleting(true)}>
            <TrashIcon /> Delete
          </Button>
          <Button kind="quiet" onClick={() => setChanging(true)}>
            <PencilIcon /> Edit
          </Button>
        </>
      )}
      {changing && <MakeAgent was={agent.definition} close={() => setChanging(false)} />}
      <Button busy={set.isPending} onClick={() => set.mutate(to, told)}>
        {to === 'start' ? <PlayIcon /> : <StopIcon />} {to === 'start' ? 'Start' : 'Stop'}
      </Button>
      {deleting && (
        <Confirm
          title={`Delete ${agent.name}?`}
          yes="Delete"
          failed="The agent was not deleted."
          act={() => remove.mutateAsync().then(() => navigate({ to: '/agents' }))}
          onClose={() => setDeleting(false)}
        >
          Its current runs finish. Conversations are kept and can continue with another agent.
        </Confirm>
      )}
    </>
  )
}
