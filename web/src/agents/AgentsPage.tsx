import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { searchFor, useNamedProject } from '../files/namedProject'
import { ProjectPicker } from '../files/ProjectPicker'
import { AgentGlyph } from '../ui/AgentGlyph'
import { Button } from '../ui/Button'
import { EmptyState } from '../ui/EmptyState'
import { ErrorState } from '../ui/ErrorState'
import { FileErrors } from '../ui/FileErrors'
import { PlusIcon } from '../ui/icons'
import { Mono } from '../ui/Mono'
import { Page } from '../ui/Page'
import { Spinner } from '../ui/Spinner'
import { StatusBadge } from '../ui/StatusBadge'
import { useMe } from '../wire/me'
import type { Agent } from '../wire/native.generated'
import { AgentStatus } from './AgentStatus'
import { MakeAgent } from './MakeAgent'
import { agentsIn, useAgentsLive } from './queries'
import { classes } from '../ui/classes'

export function AgentsPage() {
  const { may } = useMe()
  const [making, setMaking] = useState(false)
  const project = useNamedProject()
  const navigate = useNavigate()
  const { data, error, isPending, refetch } = useQuery(agentsIn(project))
  useAgentsLive()
  const make = may('agents:write') && (
    <Button kind="primary" onClick={() => setMaking(true)}>
      <PlusIcon /> New agent
    </Button>
  )
  return (
    <Page
      title="Agents"
      lead="An agent answers with its own instructions, model, tools and limits."
      actions={
        <>
          <ProjectPicker
            project={project}
            onChoose={(root) => void navigate({ to: '/agents', search: { project: root } as never })}
          />
          {make}
        </>
      }
    >
      {error !== null && (
        <ErrorState what="The agents could not be loaded." error={error} retry={() => void refetch()} />
      )}
      {isPending && <Spinner word="Loading agents…" />}
      {data?.agents.length === 0 && (
        <EmptyState title="No agents yet" action={make || undefined}>
          Create an agent here, or add a Markdown file to the folder <Mono>agents</Mono> of the workspace.
        </EmptyState>
      )}
      {data !== undefined && data.agents.length > 0 && (
        <ul className="overflow-hidden rounded-lg border border-line">
          {data.agents.map((agent) => (
            <Row key={agent.id} agent={agent} project={project} />
          ))}
        </ul>
      )}
      {data?.problems !== undefined && <FileErrors problems={data.problems} />}
      {making && <MakeAgent close={() => setMaking(false)} />}
    </Page>
  )
}

function Row({ agent, project }: { agent: Agent; project: string }) {
  return (
    <li className="border-b border-line last:border-b-0">
      <Link
        to="/agents/$id"
        params={{ id: agent.id }}
        search={searchFor(project)}
        className={classes(
          'flex flex-wrap items-center gap-x-4 gap-y-1 bg-raised',
          'px-4 py-3 hover:bg-sunken focus-visible:-outline-offset-2',
        )}
      >
        <AgentGlyph name={agent.name} large />
        <span className="min-w-0 grow basis-56">
          <span className="flex flex-wrap items-center gap-2 font-medium">
            {agent.name}
            {agent.made && <span className="text-xs font-normal text-ink-soft">created here</span>}
            {agent.problem !== undefined && <StatusBadge status="error">error in its file</StatusBadge>}
          </span>
          <span className="block truncate text-sm text-ink-soft">{agent.description || 'No description.'}</span>
        </span>
        <span className="font-mono text-xs text-ink-soft">{agent.model ?? 'default model'}</span>
        <AgentStatus status={agent.status} />
      </Link>
    </li>
  )
}
