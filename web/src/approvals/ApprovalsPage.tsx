import { Link } from '@tanstack/react-router'
import { useRef } from 'react'
import { useShortcuts } from '../shell/shortcuts'
import { buttonLook } from '../ui/Button'
import { EmptyState } from '../ui/EmptyState'
import { ErrorState } from '../ui/ErrorState'
import { Page } from '../ui/Page'
import { Spinner } from '../ui/Spinner'
import { useMe } from '../wire/me'
import { InboxCard } from './InboxCard'
import { useCards } from './useCards'

// ApprovalsPage lists all open cards, of all sessions and their sub-agents.
export function ApprovalsPage() {
  const { may } = useMe()
  const { cards, more, loading, failed, refetch, answer, drop } = useCards()
  const list = useRef<HTMLDivElement>(null)
  useSteps(list)
  const keys = cards.length > 0 && (
    <span className="hidden sm:inline">
      {' '}
      Press <kbd>j</kbd> or <kbd>k</kbd> to move between cards.
    </span>
  )
  return (
    <Page title="Approvals" lead={<>Requests that wait for an answer, oldest first.{keys}</>}>
      {failed !== null && (
        <ErrorState what="The requests could not be loaded." error={failed} retry={() => void refetch()} />
      )}
      {loading && failed === null && <Spinner word="Loading requests…" />}
      {!loading && failed === null && cards.length === 0 && (
        <EmptyState
          title="Nothing is waiting for you"
          action={
            <Link to="/" className={buttonLook()}>
              Start a conversation
            </Link>
          }
        >
          When an agent needs your approval, asks you a question or proposes a plan, the request appears here.
        </EmptyState>
      )}
      {more && <p className="text-sm text-waiting">More requests are waiting. These are the oldest.</p>}
      <div ref={list} className="flex flex-col gap-4">
        {cards.map((card) => (
          <InboxCard
            key={card.id}
            card={card}
            may={may('agents:message')}
            answer={answer}
            decided={() => {
              drop(card.id)
              void refetch()
            }}
          />
        ))}
      </div>
    </Page>
  )
}

// useSteps moves the focus between cards with j and k. On this page they take precedence over the same keys of the
// rail.
function useSteps(list: React.RefObject<HTMLElement | null>): void {
  const step = (by: 1 | -1) => {
    const cards = [...(list.current?.querySelectorAll<HTMLElement>('[data-card]') ?? [])]
    const at = cards.findIndex((card) => card.contains(document.activeElement))
    const next = cards[at < 0 ? 0 : Math.min(cards.length - 1, Math.max(0, at + by))]
    if (next === undefined) return
    const safe =
      next.dataset.danger === undefined ? null : next.querySelector<HTMLElement>('button[data-answer="deny"]')
    ;(safe ?? next).focus({ preventScroll: true })
    next.scrollIntoView({ block: 'start' })
  }
  useShortcuts([
    { keys: 'j', what: 'Next card', run: () => step(1) },
    { keys: 'k', what: 'Previous card', run: () => step(-1) },
    { keys: 'Enter', what: 'Allow once, on the focused card, unless it is dangerous' },
    { keys: 'Backspace', what: 'Deny, on the focused card' },
  ])
}
