import { useState } from 'react'
import { ask, Problem } from '../../wire/api'
import { IconButton } from '../../ui/Button'
import { ClockIcon, CrossIcon } from '../../ui/icons'
import { why } from '../../ui/ErrorState'
import { toast } from '../../ui/toast'
import { useChat } from './chatContext'
import type { ChatMessage } from '../model/message'
import { Prose } from './Prose'
import { classes } from '../../ui/classes'

// QueuedMessages lists messages that the agent has not read yet. They can be withdrawn.
export function QueuedMessages({ messages }: { messages: ChatMessage[] }) {
  const { mayMessage, agent } = useChat()
  const [busy, setBusy] = useState<string | null>(null)

  const withdraw = async (id: string) => {
    setBusy(id)
    try {
      await ask('DELETE', `/api/v1/inputs/${id}`)
    } catch (error) {
      toast(
        error instanceof Problem && error.status === 410
          ? 'Too late: the agent has already read the message.'
          : `The message was not taken back. ${why(error)}`,
        'failed',
      )
    }
    setBusy(null)
  }

  return (
    <ul aria-label="Queued messages" className="flex flex-col items-end gap-1.5">
      {messages.map((message) => (
        <li
          key={message.id}
          className={classes(
            'flex max-w-[85%] items-center gap-2 rounded-2xl border',
            'border-dashed border-line-strong py-1 pr-1 pl-4 text-sm text-ink-soft',
          )}
        >
          <ClockIcon className="shrink-0" />
          <span className="shrink-0 font-medium">
            queued{message.to && message.to !== agent ? ` for ${message.to}` : ''}:
          </span>
          <span className="min-w-0 truncate">
            <Prose>{message.text}</Prose>
          </span>
          {mayMessage && message.inputId !== undefined && (
            <IconButton
              small
              label={`Take back: ${message.text.slice(0, 60)}`}
              disabled={busy === message.inputId}
              onClick={() => void withdraw(message.inputId!)}
            >
              <CrossIcon />
            </IconButton>
          )}
        </li>
      ))}
    </ul>
  )
}
