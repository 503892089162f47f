import { useEffect, useRef, useState, type KeyboardEvent } from 'react'
import { Button } from '../ui/Button'
import { classes } from '../ui/classes'
import { input } from '../ui/Field'
import { RetryIcon, SendIcon, WarningIcon } from '../ui/icons'
import { Exact } from '../ui/Mono'
import { Spinner } from '../ui/Spinner'
import { StatusBadge } from '../ui/StatusBadge'
import { ConsoleCard } from './ConsoleCard'
import type { ChatMessage } from './frames'
import { useAgentWebSocket, type SocketStatus } from './useAgentWebSocket'

const words: Record<SocketStatus, string> = {
  connecting: 'Connecting…',
  connected: 'Connected',
  disconnected: 'Not connected',
  error: 'Connection failed',
}

// AgentChat is the debug console of one running agent. It keeps nothing: leaving the page ends the conversation.
export function AgentChat({ agentId, project = '' }: { agentId: string; project?: string }) {
  const socket = useAgentWebSocket(agentId, true, project)
  const { messages, sendMessage, status, error, cards, busy, respond, reconnect } = socket
  const [draft, setDraft] = useState('')
  const area = useFollowing([messages, cards, busy])
  const connected = status === 'connected'
  const streaming = messages.some((message) => message.streaming && message.content !== '')

  const send = () => {
    if (!connected || draft.trim() === '') return
    sendMessage(draft)
    setDraft('')
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    send()
  }
  return (
    <section
      aria-label="Debug console"
      className="flex h-[32rem] max-h-[80dvh] flex-col overflow-hidden rounded-lg border border-line"
    >
      <header className="flex items-center gap-3 border-b border-line bg-raised px-4 py-2">
        <h2 className="grow text-sm font-semibold">Debug console</h2>
        <span role="status" aria-label="Connection">
          <StatusBadge status={status}>{words[status]}</StatusBadge>
        </span>
        {(status === 'disconnected' || status === 'error') && (
          <Button small onClick={reconnect}>
            <RetryIcon /> Connect again
          </Button>
        )}
      </header>
      <div
        ref={area}
        role="log"
        aria-label="Messages"
        tabIndex={0}
        className="flex grow flex-col gap-3 overflow-y-auto px-4 py-3"
      >
        {messages.length === 0 && (
          <p className="m-auto max-w-sm text-center text-sm text-ink-soft">
            Send a message to see how the agent answers and which tools it uses. Messages sent here are not added to
            your conversations.
          </p>
        )}
        {messages.map((message) => (
          <Message key={message.id} message={message} />
        ))}
        {cards.map((card) => (
          <ConsoleCard
            key={card.id}
            card={card}
            agent={agentId}
            project={project}
            respond={respond}
            disabled={!connected}
          />
        ))}
        {busy && !streaming && cards.length === 0 && <Spinner word="Working…" />}
      </div>
      {error !== null && messages.at(-1)?.type !== 'halt' && (
        <p role="alert" className="border-t border-line bg-failed-soft px-4 py-2 text-sm text-failed">
          {error}
        </p>
      )}
      <form
        className="flex items-end gap-2 border-t border-line bg-raised p-2"
        onSubmit={(event) => {
          event.preventDefault()
          send()
        }}
      >
        <textarea
          aria-label={`Message ${agentId}`}
          placeholder={connected ? `Message ${agentId}…` : words[status]}
          rows={1}
          className={classes(input, 'field-sizing-content max-h-40 min-h-9 resize-none max-md:min-h-11')}
          value={draft}
          onChange={(event) => setDraft(event.target.value)}
          onKeyDown={onKeyDown}
        />
        <Button type="submit" kind="primary" disabled={!connected || draft.trim() === ''}>
          <SendIcon /> Send
        </Button>
      </form>
    </section>
  )
}

function Message({ message }: { message: ChatMessage }) {
  switch (message.type) {
    case 'user':
      return (
        <div
          data-type="user"
          className="max-w-[85%] self-end whitespace-pre-wrap break-words rounded-lg bg-accent-soft px-3 py-2 text-sm"
        >
          <Exact>{message.content}</Exact>
        </div>
      )
    case 'assistant':
      return (
        <div
          data-type="assistant"
          data-streaming={message.streaming || undefined}
          className={classes(
            'max-w-[85%] self-start whitespace-pre-wrap break-words',
            'rounded-lg border border-line bg-raised px-3 py-2 text-sm',
          )}
        >
          {message.content === '' && !message.streaming ? (
            <span className="text-ink-soft">(The agent gave no answer.)</span>
          ) : (
            <Exact>{message.content}</Exact>
          )}
          {message.streaming && (
            <span aria-hidden="true" className="animate-pulse">
              ▌
            </span>
          )}
        </div>
      )
    case 'tool':
      return (
        <p data-type="tool" className="self-center break-words text-center text-xs text-ink-soft">
          <Ticks>{message.content}</Ticks>
        </p>
      )
    case 'error':
      return (
        <div
          data-type="error"
          role="alert"
          className={classes(
            'flex items-start gap-2 break-words rounded-md border',
            'border-failed bg-failed-soft px-3 py-2 text-sm text-failed',
          )}
        >
          <WarningIcon className="mt-1 shrink-0" />
          <span className="min-w-0">
            <Exact>{message.content}</Exact>
          </span>
        </div>
      )
    case 'halt':
      return (
        <div
          data-type="halt"
          role="alert"
          className={classes(
            'flex items-start gap-3 break-words rounded-md',
            'border-2 border-failed bg-failed-soft px-4 py-3 text-failed',
          )}
        >
          <WarningIcon className="mt-0.5 size-5 shrink-0" />
          <span className="min-w-0">
            <strong className="block font-semibold">Session halted</strong>
            <Exact>{message.content}</Exact>
          </span>
        </div>
      )
  }
}

// Ticks sets the text between backticks as code and keeps the backticks, so that a copied line is the line of the
// document.
function Ticks({ children }: { children: string }) {
  return children.split(/(`[^`]*`)/).map((part, at) =>
    at % 2 === 1 ? (
      <code key={at} className="font-mono">
        <Exact>{part}</Exact>
      </code>
    ) : (
      <Exact key={at}>{part}</Exact>
    ),
  )
}

// useFollowing keeps the bottom in view while the reader is there.
function useFollowing(changes: unknown[]) {
  const area = useRef<HTMLDivElement>(null)
  const follows = useRef(true)
  useEffect(() => {
    const element = area.current
    if (element === null) return
    const scrolled = () => {
      follows.current = element.scrollHeight - element.scrollTop - element.clientHeight < 40
    }
    element.addEventListener('scroll', scrolled, { passive: true })
    return () => element.removeEventListener('scroll', scrolled)
  }, [])
  useEffect(() => {
    const element = area.current
    if (element !== null && follows.current) element.scrollTop = element.scrollHeight
  }, changes)
  return area
}
