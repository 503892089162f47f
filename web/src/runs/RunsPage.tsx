import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { agentsQuery } from '../agents/queries'
import { Button } from '../ui/Button'
import { Select } from '../ui/Field'
import { CrossIcon } from '../ui/icons'
import { Page } from '../ui/Page'
import { RunList } from './RunList'

// The filters are in the address, so that a filtered list can be shared.
function useFilters() {
  const read = () => {
    const query = new URLSearchParams(location.search)
    return { agent: query.get('agent') ?? '', session: query.get('session') ?? '', open: query.get('open') === '1' }
  }
  const [filters, set] = useState(read)
  const change = (some: Partial<ReturnType<typeof read>>) => {
    const next = { ...filters, ...some }
    set(next)
    const query = new URLSearchParams()
    if (next.agent !== '') query.set('agent', next.agent)
    if (next.session !== '') query.set('session', next.session)
    if (next.open) query.set('open', '1')
    history.replaceState(history.state, '', query.size > 0 ? `?${query}` : location.pathname)
  }
  return [filters, change] as const
}

export function RunsPage() {
  const [{ agent, session, open }, change] = useFilters()
  const agents = useQuery(agentsQuery).data?.agents ?? []
  const names = [...new Set([...agents.map((one) => one.name), ...(agent === '' ? [] : [agent])])]
  const narrowed = agent !== '' || session !== '' || open
  return (
    <Page title="Runs" lead="A run is everything that an agent does for one message or timer. The newest are first.">
      <div role="group" aria-label="Filters" className="flex flex-wrap items-center gap-2">
        <Select aria-label="Agent" value={agent} onChange={(event) => change({ agent: event.target.value })}>
          <option value="">All agents</option>
          {names.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </Select>
        <Button aria-pressed={open} kind={open ? 'primary' : 'plain'} onClick={() => change({ open: !open })}>
          Unfinished only
        </Button>
        {session !== '' && (
          <Button onClick={() => change({ session: '' })}>
            Session {session.slice(0, 8)}… <CrossIcon /> <span className="sr-only">Remove this filter</span>
          </Button>
        )}
      </div>
      <RunList
        key={`${agent} ${session} ${open}`}
        agent={agent || undefined}
        session={session || undefined}
        open={open}
        empty={narrowed ? 'No run matches these filters.' : undefined}
      />
    </Page>
  )
}
