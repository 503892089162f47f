import { useState } from 'react'
import { Card } from '../cards/Card'
import { asLists, type CardContent, type Reply } from '../cards/content'
import { ExplanationText } from '../cards/ExplanationText'
import type { ConsoleCard as Waiting } from './frames'
import type { AgentWebSocket } from './useAgentWebSocket'

function contentOf(card: Waiting): CardContent {
  switch (card.kind) {
    case 'approval':
      return { kind: 'approval', tool: card.tool, show: card.command, why: card.why, similar: card.similar }
    case 'question':
      return card
    case 'call':
      return { kind: 'call', tool: card.tool, text: card.message }
  }
}

function frameOf(reply: Reply): { type: string } & Record<string, unknown> {
  switch (reply.kind) {
    case 'approval':
      return { type: 'approval_response', decision: reply.decision, scope: reply.scope, note: reply.note }
    case 'question':
      return { type: 'question_response', answers: asLists(reply.answers) }
    case 'call':
      return { type: 'tool_call_resolution', resolution: reply.resolution, note: reply.note }
  }
}

interface ConsoleCardProps {
  card: Waiting
  agent: string // agent of the console; a card of a sub-agent names its own
  project: string // '' is the first
  respond: AgentWebSocket['respond']
  disabled: boolean
}

// ConsoleCard is a card in the debug console. It disappears when the server says that it was answered, by any client.
export function ConsoleCard({ card, agent, project, respond, disabled }: ConsoleCardProps) {
  const [asking, setAsking] = useState(false)
  const explanation = card.kind === 'approval' ? card.explanation : undefined
  const ask = () => {
    setAsking(true)
    respond({ type: 'approval_response', decision: 'explain', id: card.id })
  }
  return (
    <Card
      id={card.id}
      agent={card.agent ?? agent}
      content={contentOf(card)}
      project={project}
      may
      disabled={disabled}
      note={card.kind === 'question' ? undefined : 'folded'}
      explanation={{
        ask,
        asked: explanation !== undefined ? 'done' : asking ? 'waiting' : undefined,
        text: explanation !== undefined && <ExplanationText>{explanation}</ExplanationText>,
      }}
      reply={(reply) => respond({ ...frameOf(reply), id: card.id })}
    />
  )
}
