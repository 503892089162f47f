import { StatusBadge } from '../ui/StatusBadge'

// AgentStatus says whether an agent takes messages. One that does is ready: what runs are runs.
export function AgentStatus({ status }: { status: string }) {
  return status === 'running' ? <StatusBadge status="done">ready</StatusBadge> : <StatusBadge status={status} />
}
