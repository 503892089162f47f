import { useState } from 'react'
import { QuestionForm } from '../cards/QuestionForm'
import { useReplaced } from '../cards/replaced'
import { risky } from '../cards/show'
import { What } from '../cards/What'
import { Button } from '../ui/Button'
import { Exact, Mono } from '../ui/Mono'
import { StatusBadge } from '../ui/StatusBadge'
import type { ConsoleCard } from './frames'
import type { AgentWebSocket } from './useAgentWebSocket'

interface ConsoleCardProps {
  card: ConsoleCard
  respond: AgentWebSocket['respond']
  disabled: boolean
}

// ConsoleCardView asks in the debug console what waits for a person. It goes when
// the server says that it was answered, here or elsewhere.
export function ConsoleCardView({ card, respond, disabled }: ConsoleCardProps) {
  const [sent, setSent] = useState(false)
  const answer = (frame: { type: string } & Record<string, unknown>) => {
    setSent(true)
    respond({ ...frame, id: card.id })
  }
  const off = disabled || sent
  const shown = card.kind === 'approval' ? card : { tool: '', command: '', why: undefined }
  const replaces = useReplaced(shown.tool, shown.command) !== null
  const danger = risky(shown.tool, shown.command, '', shown.why, replaces)
  const who = card.agent === undefined ? '' : ` by ${card.agent}`
  return (
    <article
      data-console-card={card.kind}
      aria-label={card.kind === 'question' ? `Question${who}` : `Approval of ${card.tool}${who}`}
      className="flex flex-col gap-3 rounded-lg border border-line bg-raised p-3"
    >
      <p className="flex flex-wrap items-center gap-2 text-sm">
        <StatusBadge status="waiting">
          {card.kind === 'approval' ? 'Approval' : card.kind === 'question' ? 'Question' : 'Unknown outcome'}
        </StatusBadge>
        {card.kind !== 'question' && <Mono>{card.tool}</Mono>}
        {card.agent !== undefined && <span className="text-ink-soft">asked by {card.agent}</span>}
      </p>
      {card.kind === 'approval' && (
        <>
          <What tool={card.tool} show={card.command} why={card.why} />
          <Buttons
            off={off}
            choices={[
              { value: 'allow', words: 'Allow once', primary: !danger },
              { value: 'always', words: 'Always' },
              { value: 'deny', words: 'Deny', primary: danger },
            ]}
            choose={(decision) => answer({ type: 'approval_response', decision })}
          />
        </>
      )}
      {card.kind === 'question' && (
        <QuestionForm
          questions={card.questions}
          busy={off}
          answer={(answers) => answer({ type: 'question_response', answers })}
        />
      )}
      {card.kind === 'call' && (
        <>
          <p className="text-sm">
            <Exact>{card.message}</Exact>
          </p>
          <Buttons
            off={off}
            choices={[
              { value: 'mark_done', words: 'It was done' },
              { value: 'rerun', words: 'Run it again' },
              { value: 'abandon', words: 'Stop the run' },
            ]}
            choose={(resolution) => answer({ type: 'tool_call_resolution', resolution })}
          />
        </>
      )}
    </article>
  )
}

function Buttons({
  choices,
  choose,
  off,
}: {
  choices: { value: string; words: string; primary?: boolean }[]
  choose: (value: string) => void
  off: boolean
}) {
  return (
    <div className="flex flex-wrap gap-2">
      {choices.map(({ value, words, primary }) => (
        <Button key={value} small kind={primary ? 'primary' : 'plain'} disabled={off} onClick={() => choose(value)}>
          {words}
        </Button>
      ))}
    </div>
  )
}
