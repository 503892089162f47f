import { StatusBadge } from '../ui/StatusBadge'

// AgentStatus shows whether an agent accepts messages. Its label is "ready", since runs, not agents, are running.
export function AgentStatus({ status }: { status: string }) {
  return status === 'running' ? <StatusBadge status="done">ready</StatusBadge> : <StatusBadge status={status} />
}
