import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { why } from '../../ui/ErrorState'
import { toast } from '../../ui/toast'
import { ask } from '../../wire/api'
import type { ToolServer } from '../../wire/native.generated'
import { useChat } from './chatContext'

// Servers switches MCP servers off and on for this conversation. Without MCP servers it shows nothing.
export function Servers() {
  const { session, mayMessage } = useChat()
  const queries = useQueryClient()
  const { data: servers = [] } = useQuery({
    queryKey: ['mcp'],
    queryFn: ({ signal }) => ask<{ servers: ToolServer[] | null }>('GET', '/api/v1/mcp', { signal }),
    select: (answer) => answer.servers ?? [],
  })
  const [chosen, setChosen] = useState<string[]>()
  const path = `/api/v1/sessions/${session}/servers`
  const key = ['servers off', session]
  const { data: off } = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => ask<{ off: string[] }>('GET', path, { signal }),
    select: (answer) => answer.off,
    enabled: servers.length > 0,
    retry: false, // the server does not know a new conversation yet
  })
  const choose = useMutation({
    mutationFn: (now: string[]) => ask('PUT', path, { body: { off: now } }),
    onError: (error) => toast(`The tool server was not switched. ${why(error)}`, 'failed'),
    onSettled: () => queries.invalidateQueries({ queryKey: key }),
  })
  if (servers.length === 0 || off === undefined) return null
  const shown = chosen ?? off
  const change = (now: string[]) => {
    setChosen(now) // a box changes at once
    choose.mutate(now, { onSettled: () => setChosen(undefined) })
  }
  return (
    <section className="flex flex-col gap-2">
      <h2 className="text-xs font-semibold text-ink-soft">Tool servers</h2>
      <ul aria-label="Tool servers" className="flex flex-col gap-1">
        {servers.map(({ name }) => (
          <li key={name}>
            <label className="flex items-center gap-2 text-xs max-md:min-h-11">
              <input
                type="checkbox"
                className="accent-accent"
                disabled={!mayMessage || choose.isPending}
                checked={!shown.includes(name)}
                onChange={(event) =>
                  change(event.target.checked ? shown.filter((other) => other !== name) : [...shown, name])
                }
              />
              {name}
            </label>
          </li>
        ))}
      </ul>
      <p className="text-xs text-ink-soft">For this conversation, from the next turn on.</p>
    </section>
  )
}
