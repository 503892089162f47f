import { useVirtualizer } from '@tanstack/react-virtual'
import { useCallback, useEffect, useRef, useState } from 'react'
import { Button } from '../../ui/Button'
import { ErrorState } from '../../ui/ErrorState'
import { ChevronDownIcon } from '../../ui/icons'
import { Spinner } from '../../ui/Spinner'
import { AgentMessage } from './AgentMessage'
import { AskUserCard } from './AskUserCard'
import { indexOf, useTarget } from '../../shell/jump'
import type { Card, ChatMessage } from '../model/message'
import { MessageBoundary } from './MessageBoundary'
import { QueuedMessages } from './QueuedMessages'
import { UserMessage } from './UserMessage'

interface MessageListProps {
  messages: ChatMessage[]
  cards: Card[]
  waiting: ChatMessage[]
  more: boolean // there is earlier history
  earlier: { loading: boolean; error?: unknown }
  onEarlier: () => void
  sent: number // number of messages that the reader has sent: each scrolls to the end
}

const estimateSize = () => 120

const nearTop = 600 // pixels from the top at which earlier history is fetched
const atEnd = 64
const unfolding = 250 // milliseconds

// MessageList renders the visible messages. It follows the end only while the reader is there; earlier messages and
// growth above the view move nothing.
export function MessageList({ messages, cards, waiting, more, earlier, onEarlier, sent }: MessageListProps) {
  const box = useRef<HTMLDivElement>(null)
  const [away, setAway] = useState(false)
  const [held, setHeld] = useState(false) // while a fold is opened, the view stays at the click
  const first = more ? 1 : 0
  const count = first + messages.length + cards.length + (waiting.length > 0 ? 1 : 0)

  // Names of rows, replaced only when rows are added or removed: the list then
  // measures all of them, which is too slow for every chunk of an answer.
  const names = [
    first,
    messages.length,
    messages[0]?.id,
    messages.at(-1)?.id,
    ...cards.map((card) => card.question_id),
    waiting.length > 0,
  ].join(' ')
  const keyOf = useCallback(
    (at: number): string => {
      if (at < first) return 'earlier'
      const message = messages[at - first]
      if (message !== undefined) return message.id
      return cards[at - first - messages.length]?.question_id ?? 'waiting'
    },
    [names],
  )

  const virtual = useVirtualizer({
    count,
    getScrollElement: () => box.current,
    estimateSize,
    getItemKey: keyOf,
    overscan: 6,
    gap: 24,
    paddingStart: 24,
    paddingEnd: 24,
    anchorTo: held ? 'start' : 'end',
    followOnAppend: true,
    scrollEndThreshold: atEnd,
  })

  const end = useRef(true) // the reader is at the end
  const top = useRef(0) // scroll position at the last move
  // Opened at its end, even while sizes change, or at the message that the address names.
  const begun = useRef(false)
  const target = useTarget()
  const named = target === undefined ? '' : JSON.stringify(target)
  const [reached, setReached] = useState({ named: '', id: '' })
  useEffect(() => {
    if (target === undefined || reached.named === named || earlier.loading || messages.length === 0) return
    const at = indexOf(messages, target)
    if (at === undefined && more && earlier.error === undefined) return onEarlier()
    begun.current = true
    end.current = false
    setReached({ named, id: messages[at ?? 0]?.id ?? '' })
    virtual.scrollToIndex(first + (at ?? 0), { align: 'start' })
  }, [named, reached.named, messages, more, earlier, first])
  useEffect(() => {
    if (begun.current || count === 0 || target !== undefined) return
    begun.current = true
    virtual.scrollToEnd()
  }, [count, named, virtual])

  useEffect(() => {
    if (sent === 0) return
    end.current = true
    virtual.scrollToEnd()
  }, [sent, virtual])

  // A growing composer, or a keyboard that opens, does not hide the end.
  useEffect(() => {
    const element = box.current
    if (element === null) return
    const watch = new ResizeObserver(() => end.current && virtual.scrollToEnd())
    watch.observe(element)
    return () => watch.disconnect()
  }, [virtual])

  const size = virtual.getTotalSize()
  useEffect(() => {
    if (end.current && begun.current && !held) virtual.scrollToEnd()
  }, [size, held, virtual])

  const onScroll = () => {
    const element = box.current
    if (element === null) return
    const left = element.scrollHeight - element.clientHeight - element.scrollTop
    // After a scroll to the end, its event may come when the answer has grown again. So only a reader who scrolls up
    // leaves the end.
    if (left < atEnd) end.current = true
    else if (element.scrollTop < top.current) end.current = false
    top.current = element.scrollTop
    setAway(left > atEnd * 2)
    if (more && !earlier.loading && earlier.error === undefined && element.scrollTop < nearTop && begun.current)
      onEarlier()
  }

  useEffect(() => {
    if (!held) return
    const timer = setTimeout(() => {
      setHeld(false)
      onScroll() // the end may be further away now
    }, unfolding)
    return () => clearTimeout(timer)
  })

  const row = (at: number) => {
    if (at < first)
      return earlier.error === undefined ? (
        <div className="flex h-8 justify-center">
          {earlier.loading ? (
            <Spinner word="Loading earlier messages" />
          ) : (
            <Button small kind="quiet" onClick={onEarlier}>
              Load earlier messages
            </Button>
          )}
        </div>
      ) : (
        <ErrorState what="Earlier messages could not be loaded." error={earlier.error} retry={onEarlier} />
      )
    const message = messages[at - first]
    if (message !== undefined)
      return (
        <MessageBoundary raw={message}>
          {message.role === 'user' ? <UserMessage message={message} /> : <AgentMessage message={message} />}
        </MessageBoundary>
      )
    const card = cards[at - first - messages.length]
    return card === undefined ? (
      <QueuedMessages messages={waiting} />
    ) : (
      <MessageBoundary raw={card}>
        <AskUserCard card={card} />
      </MessageBoundary>
    )
  }

  return (
    <div className="relative min-h-0 grow">
      <div
        ref={box}
        onScroll={onScroll}
        onClickCapture={(event) => (event.target as Element).closest('[aria-expanded]') !== null && setHeld(true)}
        role="log"
        aria-label="Conversation"
        aria-live="off"
        tabIndex={0}
        className="h-full overflow-y-auto [overflow-anchor:none] focus-visible:outline-offset-[-2px]"
      >
        <div className="relative w-full" style={{ height: size }}>
          {virtual.getVirtualItems().map((item) => (
            <div
              key={item.key}
              data-index={item.index}
              ref={virtual.measureElement}
              className="absolute top-0 left-0 w-full"
              style={{ transform: `translateY(${item.start}px)` }}
            >
              <div
                className="mx-auto w-full max-w-[46rem] px-4 sm:px-6 data-found:border-l-2 data-found:border-accent"
                data-found={item.key === reached.id || undefined}
              >
                {row(item.index)}
              </div>
            </div>
          ))}
        </div>
      </div>
      {away && (
        <Button
          className="absolute bottom-3 left-1/2 -translate-x-1/2 rounded-full shadow-md"
          small
          onClick={() => virtual.scrollToEnd({ behavior: 'auto' })}
        >
          <ChevronDownIcon /> Go to the latest message
        </Button>
      )}
    </div>
  )
}
