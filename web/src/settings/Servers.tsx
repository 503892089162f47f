import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../ui/Button'
import { classes } from '../ui/classes'
import { Confirm } from '../ui/Confirm'
import { CopyButton } from '../ui/CopyButton'
import { EmptyState } from '../ui/EmptyState'
import { ErrorState } from '../ui/ErrorState'
import { Exact, Mono } from '../ui/Mono'
import { Box } from '../ui/Page'
import { Spinner } from '../ui/Spinner'
import { StatusBadge } from '../ui/StatusBadge'
import { toast } from '../ui/toast'
import { ask } from '../wire/api'
import { useMe } from '../wire/me'
import type { ServerTool, ToolServer } from '../wire/native.generated'
import { ServerForm } from './ServerForm'

interface Listed {
  servers: ToolServer[] | null
}

const example = `mcp:
  servers:
    files:
      command: [/opt/tools/mcp-server-filesystem, /srv/project]
`

export function Servers() {
  const { me, may } = useMe()
  const [adding, setAdding] = useState(false)
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ['mcp'],
    queryFn: ({ signal }) => ask<Listed>('GET', '/api/v1/mcp', { signal }),
  })
  if (isPending) return <Spinner word="Loading tool servers…" />
  if (data === undefined)
    return <ErrorState what="The tool servers could not be loaded." error={error} retry={() => void refetch()} />
  const servers = data.servers ?? []
  const mayAdd = may('tenant:write')
  const local = me?.auth === 'local'
  return (
    <>
      {mayAdd &&
        (adding ? (
          <ServerForm local={local} done={() => setAdding(false)} />
        ) : (
          <div>
            <Button onClick={() => setAdding(true)}>Add a tool server</Button>
          </div>
        ))}
      {servers.length === 0 && !adding && (
        <EmptyState title="No tool servers" action={<CopyButton words text={example} />}>
          A tool server offers tools to agents by the Model Context Protocol (MCP).{' '}
          {mayAdd && 'Add one above, or in the file of --config:'}
          {!mayAdd && 'The operator adds tool servers in the file of --config:'}
          <Mono block className="mt-3 text-left text-xs">
            {example}
          </Mono>
        </EmptyState>
      )}
      {servers.map((server) => (
        <Server key={server.name} server={server} local={local} />
      ))}
    </>
  )
}

function Server({ server, local }: { server: ToolServer; local: boolean }) {
  const { may } = useMe()
  const [changing, setChanging] = useState(false)
  const [removing, setRemoving] = useState(false)
  const queries = useQueryClient()
  const tools = server.tools ?? []
  const waiting = tools.filter((tool) => tool.status === 'waiting')
  const accept = useMutation({
    mutationFn: (some: ServerTool[]) =>
      ask<Listed>('POST', `/api/v1/mcp/${encodeURIComponent(server.name)}/accept`, {
        body: { tools: Object.fromEntries(some.map((tool) => [tool.name, tool.digest])) },
      }),
    onSuccess: (now) => queries.setQueryData(['mcp'], now),
    onError: (error) => {
      toast(error.message, 'failed')
      void queries.invalidateQueries({ queryKey: ['mcp'] }) // another tool may have its name now
    },
  })
  const admin = may('agents:write')
  if (changing) return <ServerForm server={server} local={local} done={() => setChanging(false)} />
  return (
    <Box>
      <header className="flex flex-wrap items-center gap-2 px-4 py-3">
        <h2 className="font-semibold">{server.name}</h2>
        <StatusBadge status={server.status} />
        <span className="text-xs text-ink-soft">
          {server.transport}
          {server.trusted && ', trusted: its tools need no acceptance'}
          {server.console ? ', added here' : ', from the file of --config: change it there'}
        </span>
        {admin && waiting.length > 1 && (
          <Button small className="ml-auto" busy={accept.isPending} onClick={() => accept.mutate(waiting)}>
            Accept all {waiting.length}
          </Button>
        )}
        {server.setup !== undefined && (
          <span className={classes('flex gap-2', !(admin && waiting.length > 1) && 'ml-auto')}>
            <Button small onClick={() => setChanging(true)}>
              Change
            </Button>
            <Button small onClick={() => setRemoving(true)}>
              Remove…
            </Button>
          </span>
        )}
      </header>
      {removing && (
        <Confirm
          title={`Remove the tool server ${server.name}?`}
          yes="Remove"
          failed="The server was not removed."
          act={async () => {
            const now = await ask<Listed>('DELETE', `/api/v1/mcp/${encodeURIComponent(server.name)}`)
            queries.setQueryData(['mcp'], now)
          }}
          onClose={() => setRemoving(false)}
        >
          Its connection ends now. The outcome of a running call is then unknown, and a person decides about it.
        </Confirm>
      )}
      {server.problem !== undefined && <p className="px-4 pb-3 text-sm text-failed">{server.problem}</p>}
      <ul>
        {tools.map((tool) => (
          <li key={tool.name} className="flex flex-wrap items-start gap-x-4 gap-y-2 border-t border-line px-4 py-3">
            <div className="flex min-w-0 grow basis-72 flex-col gap-1">
              <span className="flex flex-wrap items-center gap-2">
                <Mono>{tool.name}</Mono>
                <StatusBadge
                  status={tool.status === 'available' ? 'done' : tool.status === 'waiting' ? 'waiting' : 'blocked'}
                >
                  {tool.status === 'waiting'
                    ? tool.accepted === undefined
                      ? 'not accepted yet'
                      : 'changed since it was accepted'
                    : tool.status}
                </StatusBadge>
              </span>
              <p className="whitespace-pre-wrap break-words text-sm text-ink-soft">
                <Exact>{tool.description}</Exact>
              </p>
              {tool.reason !== undefined && <p className="text-sm text-failed">{tool.reason}</p>}
              <details>
                <summary className="cursor-pointer text-xs text-ink-soft">Parameters and digest</summary>
                <Mono block className="mt-1 max-h-60 text-xs">
                  {JSON.stringify(
                    { digest: tool.digest, accepted: tool.accepted, parameters: tool.parameters },
                    null,
                    2,
                  )}
                </Mono>
              </details>
            </div>
            {admin && tool.status === 'waiting' && (
              <Button small kind="primary" busy={accept.isPending} onClick={() => accept.mutate([tool])}>
                Accept
              </Button>
            )}
          </li>
        ))}
        {tools.length === 0 && (
          <li className="border-t border-line px-4 py-3 text-sm text-ink-soft">
            This server has not listed any tools yet.
          </li>
        )}
      </ul>
    </Box>
  )
}
