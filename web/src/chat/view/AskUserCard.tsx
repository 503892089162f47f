import { useState } from 'react'
import { Card as CardView } from '../../cards/Card'
import type { Reply } from '../../cards/content'
import { why } from '../../ui/ErrorState'
import { RelativeTime } from '../../ui/RelativeTime'
import { toast } from '../../ui/toast'
import { ask } from '../../wire/api'
import { answersTo, contentOf } from '../model/approval'
import type { Card } from '../model/message'
import { answerCard } from './answerCard'
import { useChat } from './chatContext'

interface AskUserCardProps {
  card: Card
  closed?: boolean // it cannot be answered, and is shown as a record
}

// AskUserCard is a card in its conversation. After an answer from any client it disappears: the bus tells every client.
export function AskUserCard({ card, closed }: AskUserCardProps) {
  const { session, project, mayMessage } = useChat()
  const content = contentOf(card)
  const [asking, setAsking] = useState(false)
  // The explanation is a message in the conversation.
  const explain = async () => {
    setAsking(true)
    try {
      await ask('POST', `/api/v1/approvals/${card.question_id}`, { body: { decision: 'explain' } })
    } catch (error) {
      setAsking(false)
      toast(`No explanation was requested. ${why(error)}`, 'failed')
    }
  }
  const reply = (given: Reply) => answerCard(card.question_id, answersTo(given))
  return (
    <CardView
      id={card.question_id}
      agent={card.agent}
      content={content}
      project={project}
      may={mayMessage}
      closed={closed}
      reply={reply}
      takesFocus
      note={content.kind === 'approval' ? 'folded' : undefined}
      explanation={{
        ask: () => void explain(),
        asked: card.explained ? 'done' : asking ? 'waiting' : undefined,
      }}
      aside={
        <>
          {card.session !== session && card.agent !== '' && <span>sub-agent</span>}
          {card.expires_at !== undefined && (
            <span>
              expires <RelativeTime at={card.expires_at} />
            </span>
          )}
        </>
      }
    />
  )
}
