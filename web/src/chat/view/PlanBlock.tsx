import { PlanCard } from '../../cards/PlanCard'
import type { Plan } from '../../wire/bus.generated'
import { useChat } from './chatContext'

export { PlanItems } from '../../cards/PlanCard'

// PlanBlock shows the plan of the agent in its conversation.
export function PlanBlock({ plan, deciding = false }: { plan: Plan; deciding?: boolean }) {
  const { mayMessage, session } = useChat()
  return <PlanCard plan={plan} session={session} waits={deciding} decides={deciding && mayMessage} />
}
