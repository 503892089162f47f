import { useState } from 'react'
import { Card as CardView } from '../../cards/Card'
import type { Reply } from '../../cards/content'
import { why } from '../../ui/ErrorState'
import { RelativeTime } from '../../ui/RelativeTime'
import { toast } from '../../ui/toast'
import { ask, Problem } from '../../wire/api'
import { answersTo, contentOf } from '../model/approval'
import type { Card } from '../model/message'
import { useChat } from './chatContext'

interface AskUserCardProps {
  card: Card
  closed?: boolean // it cannot be answered, and is shown for what it was
}

// AskUserCard is a card in the conversation that it belongs to. One that was answered goes by itself, wherever that
// was: the bus tells every client.
export function AskUserCard({ card, closed }: AskUserCardProps) {
  const { session, mayMessage } = useChat()
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
  const reply = async (given: Reply) => {
    const answers = answersTo(given).map((answer, at) => ({ question_index: at, custom_text: null, ...answer }))
    try {
      await ask('POST', '/api/ask-user-response', { body: { question_id: card.question_id, answers } })
    } catch (error) {
      const gone = error instanceof Problem && (error.status === 410 || error.status === 404)
      throw gone ? new Problem('It was answered elsewhere, or it has expired.', error.status) : error
    }
  }
  return (
    <CardView
      id={card.question_id}
      agent={card.agent}
      content={content}
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
