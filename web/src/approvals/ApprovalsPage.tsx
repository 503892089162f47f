import { useRef } from 'react'
import { useShortcuts } from '../shell/shortcuts'
import { EmptyState } from '../ui/EmptyState'
import { ErrorState } from '../ui/ErrorState'
import { Page } from '../ui/Page'
import { Spinner } from '../ui/Spinner'
import { useMe } from '../wire/me'
import { InboxCard } from './InboxCard'
import { useCards } from './useCards'

// ApprovalsPage is everything that waits for a person, across sessions and what
// they have delegated.
export function ApprovalsPage() {
  const { may } = useMe()
  const { cards, more, loading, failed, refetch, answer } = useCards()
  const list = useRef<HTMLDivElement>(null)
  useSteps(list)
  const keys = cards.length > 0 && (
    <span className="hidden sm:inline">
      {' '}
      <kbd>j</kbd> and <kbd>k</kbd> go from card to card.
    </span>
  )
  return (
    <Page title="Approvals" lead={<>What waits for a person, longest first.{keys}</>}>
      {failed !== null && (
        <ErrorState what="What waits could not be listed." error={failed} retry={() => void refetch()} />
      )}
      {loading && failed === null && <Spinner word="Looking for what waits…" />}
      {!loading && failed === null && cards.length === 0 && (
        <EmptyState title="Nothing waits for you">
          Commands and changes that agents want your word for, and what they ask, will be here as soon as they wait.
        </EmptyState>
      )}
      {more && <p className="text-sm text-waiting">More wait than are shown: these have waited longest.</p>}
      <div ref={list} className="flex flex-col gap-4">
        {cards.map((card) => (
          <InboxCard key={card.id} card={card} may={may('agents:message')} answer={answer} />
        ))}
      </div>
    </Page>
  )
}

// useSteps moves the focus between cards with j and k. They are in front of those
// of the rail: here they mean this.
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
    { keys: 'Enter', what: 'Allow once what the focused card asks, unless it is dangerous' },
    { keys: 'Backspace', what: 'Deny what the focused card asks' },
  ])
}
