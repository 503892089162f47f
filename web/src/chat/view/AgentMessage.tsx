import { Link } from '@tanstack/react-router'
import { memo, useState } from 'react'
import { lasting } from '../../ui/time'
import { AgentGlyph } from '../../ui/AgentGlyph'
import { Button, IconButton } from '../../ui/Button'
import { CopyButton } from '../../ui/CopyButton'
import { BranchIcon, RetryIcon } from '../../ui/icons'
import { StatusBadge } from '../../ui/StatusBadge'
import { answerOf, isEmpty } from '../model/blocks'
import { useChat } from './chatContext'
import { badEnds, getMessagePhase, type ChatMessage } from '../model/message'
import { MessageBlocks } from './MessageBlocks'
import { Prose } from './Prose'
import { ThinkingIndicator } from './ThinkingIndicator'
import { short } from '../../ui/amounts'
import { classes } from '../../ui/classes'

// AgentMessage is one answer: its sub-agents, its actions and its text. It is rendered again only when it changes.
export const AgentMessage = memo(function AgentMessage({ message }: { message: ChatMessage }) {
  const phase = getMessagePhase(message)
  if (message.forkedFrom !== undefined) return <ForkMark source={message.forkedFrom} />
  if (phase === 'done' && isEmpty(message) && message.outcome === undefined) return null
  if (message.from === 'system') return <Announcement message={message} />
  return (
    <article
      aria-label={`${message.from || 'agent'} said`}
      aria-busy={phase !== 'done'}
      data-phase={phase}
      className="group/message flex flex-col gap-2"
    >
      <header className="flex items-center gap-2 text-sm">
        <AgentGlyph name={message.from || 'agent'} />
        <span className="font-semibold">{message.from || 'agent'}</span>
        {message.outcome !== undefined && badEnds.has(message.outcome) && (
          <StatusBadge status={message.outcome}>
            {message.outcome === 'cancelled' ? 'stopped' : message.outcome}
          </StatusBadge>
        )}
      </header>
      <MessageBlocks message={message} />
      {phase !== 'done' && <Going message={message} />}
      {phase === 'done' && <Again message={message} />}
      {phase === 'done' && <Foot message={message} />}
    </article>
  )
})

// Again offers to send the last message once more, if its answer failed or was stopped.
function Again({ message }: { message: ChatMessage }) {
  const { again } = useChat()
  const [busy, setBusy] = useState(false)
  if (again === undefined || again.after !== message.id) return null
  return (
    <div>
      <Button
        small
        busy={busy}
        onClick={async () => {
          setBusy(true)
          await again.send().finally(() => setBusy(false))
        }}
      >
        Try again
      </Button>
    </div>
  )
}

// Announcement is a message of the system: a follow-up is due, or something failed while no run was active.
function Announcement({ message }: { message: ChatMessage }) {
  return (
    <article
      aria-label="Parley said"
      className={classes(
        'flex items-center gap-3 text-center text-xs text-ink-soft',
        'before:h-px before:grow before:bg-line after:h-px after:grow after:bg-line',
      )}
    >
      <p className="max-w-[80%] break-words">
        <Prose>{message.text}</Prose>
      </p>
    </article>
  )
}

// Going shows the current activity of the agent while no output is visible. While the run waits for a person, the card
// below shows that.
function Going({ message }: { message: ChatMessage }) {
  const { asked, cards } = useChat()
  const last = message.content?.at(-1)
  if (cards.length > 0 && (asked.size > 0 || last?.type === 'tool_use')) return null
  switch (getMessagePhase(message)) {
    case 'thinking':
      return last?.type === 'thinking' && last.open ? null : (
        <ThinkingIndicator word="Thinking" sinceMs={message.statusSinceMs} />
      )
    case 'working':
      return last?.type === 'tool_use' && last.endedMs === undefined ? null : (
        <ThinkingIndicator word={message.activitySummary ?? 'Working'} sinceMs={message.statusSinceMs} />
      )
    default:
      if (last?.type === 'text' && last.open) return null // it is visible by itself
      return (
        <ThinkingIndicator
          word={message.turns === undefined ? 'Starting' : 'Waiting for the model'}
          sinceMs={message.statusSinceMs ?? message.timestampMs}
        />
      )
  }
}

// ForkButtons begin branches of the conversation at an answer.
function ForkButtons({ message }: { message: ChatMessage }) {
  const { forks, mayMessage, session } = useChat()
  const [busy, setBusy] = useState(false)
  if (forks === undefined || !mayMessage || message.session !== session) return null
  const doing = async (act: (answer: ChatMessage) => Promise<void>) => {
    setBusy(true)
    await act(message)
    setBusy(false)
  }
  return (
    <>
      <IconButton small label="Answer again, in a branch" disabled={busy} onClick={() => void doing(forks.regenerate)}>
        <RetryIcon />
      </IconButton>
      <IconButton small label="Fork the conversation here" disabled={busy} onClick={() => void doing(forks.forkAfter)}>
        <BranchIcon />
      </IconButton>
    </>
  )
}

// ForkMark divides the messages of a fork's source from the fork's own.
function ForkMark({ source }: { source: string }) {
  return (
    <p
      className={classes(
        'flex items-center gap-3 text-xs text-ink-soft',
        'before:h-px before:grow before:bg-line after:h-px after:grow after:bg-line',
      )}
    >
      <Link to="/chat/$session" params={{ session: source }} className="underline underline-offset-2 hover:text-ink">
        Forked from another conversation
      </Link>
    </p>
  )
}

function Foot({ message }: { message: ChatMessage }) {
  return (
    <footer
      className={classes(
        '-mt-1 -mb-3 flex h-6 items-center gap-x-3 text-xs text-ink-soft opacity-0 transition-opacity',
        'group-focus-within/message:opacity-100 group-hover/message:opacity-100',
        'max-md:h-auto max-md:flex-wrap max-md:opacity-100 pointer-coarse:opacity-100',
      )}
    >
      <span className="-ml-1.5 flex items-center">
        {message.text.trim() !== '' && <CopyButton text={() => answerOf(message)} label="Copy answer" />}
        {message.outcome !== undefined && <ForkButtons message={message} />}
      </span>
      {message.durationMs !== undefined && (
        <span>
          {lasting(message.durationMs - (message.waitedMs ?? 0))}
          {(message.waitedMs ?? 0) >= 1000 && ` and ${lasting(message.waitedMs!)} waiting for you`}
        </span>
      )}
      {message.model !== undefined && <span className="max-w-40 truncate">{message.model}</span>}
      {message.contextTokens !== undefined && <span>{short(message.contextTokens)} tokens in context</span>}
      {message.timestampMs !== undefined && (
        <time dateTime={message.timestamp}>
          {new Date(message.timestampMs).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })}
        </time>
      )}
    </footer>
  )
}
