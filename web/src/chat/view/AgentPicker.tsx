import { Button } from '../../ui/Button'
import { CheckIcon, ChevronDownIcon } from '../../ui/icons'
import { Menu, MenuItem } from '../../ui/Menu'
import type { Agent } from '../../wire/native.generated'

// AgentPicker chooses the agent of the next message.
export function AgentPicker({
  agents,
  agent,
  onChoose,
}: {
  agents: Agent[]
  agent?: string
  onChoose: (agent: string) => void
}) {
  const known = agent ?? agents[0]?.id
  if (known === undefined) return null
  return (
    <Menu
      align="start"
      items={agents.map((each) => (
        <MenuItem
          key={each.id}
          disabled={each.status === 'stopped'}
          hint={each.status === 'running' ? undefined : each.status}
          onSelect={() => onChoose(each.id)}
        >
          <CheckIcon className={each.id === known ? 'shrink-0' : 'invisible shrink-0'} />
          <span className="flex min-w-0 flex-col py-1">
            <span className="font-medium">{each.id}</span>
            {each.description !== '' && (
              <span className="max-w-72 truncate text-xs text-ink-soft">{each.description}</span>
            )}
          </span>
        </MenuItem>
      ))}
    >
      <Button small kind="quiet" className="min-w-0 !shrink" aria-label={`Agent: ${known}. Choose another`}>
        <span className="max-w-36 truncate">{known}</span> <ChevronDownIcon className="shrink-0" />
      </Button>
    </Menu>
  )
}
