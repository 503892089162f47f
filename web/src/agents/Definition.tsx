import { useState } from 'react'
import { Button } from '../ui/Button'
import { Mono } from '../ui/Mono'
import { Facts } from '../ui/Page'
import type { AgentDetail } from '../wire/native.generated'

// Definition lists the parts of an agent's definition. The server sends instructions only to users who may change them.
export function Definition({ agent }: { agent: AgentDetail }) {
  const definition = agent.definition
  const limits = definition?.limits ?? {}
  const facts: [string, React.ReactNode][] = [
    ['Model', <Mono key="model">{agent.model ?? 'default'}</Mono>],
    [
      'Fallback models',
      definition?.fallback_models?.length ? <Names key="fallback" names={definition.fallback_models} /> : 'none',
    ],
    ['Tools', <Tools key="tools" tools={definition?.tools ?? null} />],
    ['Approval', definition?.approval ?? 'default of the tenant'],
    [
      'Delegates to',
      definition?.delegates === undefined ? (
        'any agent without an allow list'
      ) : (
        <Names key="delegates" names={definition.delegates} />
      ),
    ],
    [
      'Allowed roles',
      definition?.allow === undefined
        ? 'every role with agents:message'
        : (definition.allow.roles ?? []).join(', ') || 'none',
    ],
    [
      'Limits per run',
      [
        limits.turns !== undefined && `${limits.turns} turns`,
        limits.tokens !== undefined && `${limits.tokens.toLocaleString()} tokens`,
        limits.minutes !== undefined && `${limits.minutes} min`,
        limits.cost_usd !== undefined && `$${limits.cost_usd}`,
      ]
        .filter(Boolean)
        .join(', ') || 'default of the tenant',
    ],
  ]
  if (definition?.allow?.users !== undefined) facts.push(['Allowed users', definition.allow.users.join(', ')])
  if (definition?.idle_prompt !== undefined)
    facts.push([
      'Idle prompt',
      definition.idle_prompt +
        (definition.idle_interval_secs === undefined ? '' : ` (after ${definition.idle_interval_secs} s)`),
    ])
  if (definition?.address !== undefined) facts.push(['Address', <Mono key="address">{definition.address}</Mono>])
  return (
    <div className="flex flex-col gap-4">
      <Facts facts={facts} />
      {definition?.instructions !== undefined && <Instructions text={definition.instructions} />}
    </div>
  )
}

function Tools({ tools }: { tools: string[] | null }) {
  if (tools === null || tools.includes('*')) return 'all'
  if (tools.length === 0) return 'none'
  return <Names names={tools} />
}

function Names({ names }: { names: string[] }) {
  return (
    <span className="flex flex-wrap gap-1">
      {names.map((name) => (
        <Mono key={name}>{name}</Mono>
      ))}
    </span>
  )
}

// Long instructions are folded, and the fold shows their length.
function Instructions({ text }: { text: string }) {
  const long = text.length > 600 || text.split('\n').length > 10
  const [open, setOpen] = useState(!long)
  return (
    <div className="text-sm">
      <p className="mb-1 text-ink-soft">Instructions</p>
      <div className={open ? '' : 'relative max-h-40 overflow-hidden'}>
        <Mono block className="bg-paper">
          {text}
        </Mono>
        {!open && (
          <div aria-hidden="true" className="absolute inset-x-0 bottom-0 h-12 rounded-md bg-gradient-to-t from-paper" />
        )}
      </div>
      {long && (
        <Button small kind="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? 'Show less' : `Show all ${text.length.toLocaleString()} characters`}
        </Button>
      )}
    </div>
  )
}
