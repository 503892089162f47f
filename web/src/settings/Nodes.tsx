import { useQuery } from '@tanstack/react-query'
import { EmptyState } from '../ui/EmptyState'
import { ErrorState } from '../ui/ErrorState'
import { Mono } from '../ui/Mono'
import { RelativeTime } from '../ui/RelativeTime'
import { Row, Rows } from '../ui/Page'
import { Spinner } from '../ui/Spinner'
import { StatusBadge } from '../ui/StatusBadge'
import { ask } from '../wire/api'
import type { Node } from '../wire/native.generated'

// Nodes lists the servers that share the database.
export function Nodes() {
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ['nodes'],
    queryFn: ({ signal }) => ask<{ nodes: Node[] }>('GET', '/api/v1/nodes', { signal }),
    refetchInterval: 10_000,
  })
  if (isPending) return <Spinner word="Loading nodes…" />
  if (data === undefined)
    return <ErrorState what="The nodes could not be loaded." error={error} retry={() => void refetch()} />
  if (data.nodes.length === 0)
    return (
      <EmptyState title="One server">
        This server works alone. With PostgreSQL (<Mono>PARLEY_DATABASE_URL</Mono>) several servers share the work, and
        take over from each other: see docs/cluster.md.
      </EmptyState>
    )
  return (
    <Rows label="Nodes">
      {data.nodes.map((node, at) => (
        <Row key={node.id}>
          <StatusBadge status={node.draining ? 'waiting' : 'done'}>
            {node.draining ? 'stopping' : 'serving'}
          </StatusBadge>
          <span className="min-w-0 grow basis-56">
            <Mono>{node.address}</Mono>
            {at === 0 && <span className="ml-2 text-ink-soft">this server</span>}
            {node.differs !== undefined && node.differs.length > 0 && (
              <span className="block text-xs text-waiting">differs in {node.differs.join(', ')}</span>
            )}
          </span>
          <span className="text-ink-soft">
            {node.sessions === 1 ? '1 session' : `${node.sessions} sessions`} in memory
          </span>
          <span className="text-xs text-ink-soft">version {node.version}</span>
          <span className="text-xs text-ink-soft">
            started <RelativeTime at={node.since} />
          </span>
        </Row>
      ))}
    </Rows>
  )
}
