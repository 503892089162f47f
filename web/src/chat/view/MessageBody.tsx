import { AskUserCard } from './AskUserCard'
import { ChangeReportBlock } from './ChangeReportBlock'
import { useChat } from './chatContext'
import { FinalizeTaskBlock } from './FinalizeTaskBlock'
import { MarkdownContent } from './MarkdownContent'
import { PlanBlock } from './PlanBlock'
import { special } from '../model/special'

// MessageBody renders a text. A model can write anything, even a card: it is shown as a card, but it cannot be
// answered.
export function MessageBody({ text, live }: { text: string; live?: boolean }) {
  const { cards } = useChat()
  const block = live ? null : special(text)
  switch (block?.type) {
    case 'plan':
      return <PlanBlock plan={block.plan} />
    case 'finalize_task':
      return <FinalizeTaskBlock task={block.task} />
    case 'change_report':
      return <ChangeReportBlock files={block.files} truncated={block.truncated} />
    case 'ask_user': {
      const open = cards.find((card) => card.question_id === block.asked.question_id)
      // An open card is shown elsewhere, where it can be answered.
      return open === undefined ? <AskUserCard card={{ ...block.asked, agent: '', session: '' }} closed /> : null
    }
    default:
      return <MarkdownContent text={text} live={live} />
  }
}
