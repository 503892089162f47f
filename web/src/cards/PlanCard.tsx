import { useRef, useState, type ReactNode } from 'react'
import { asText, progress } from '../chat/model/plan'
import { MarkdownContent } from '../chat/view/MarkdownContent'
import { Prose } from '../chat/view/Prose'
import { AgentGlyph } from '../ui/AgentGlyph'
import { Button } from '../ui/Button'
import { classes } from '../ui/classes'
import { Dialog } from '../ui/Dialog'
import { ErrorState } from '../ui/ErrorState'
import { TextArea } from '../ui/Field'
import { StatusBadge } from '../ui/StatusBadge'
import { ask } from '../wire/api'
import type { Plan } from '../wire/bus.generated'
import { useSteady } from './steady'

const words: Record<string, string> = { planned: 'waiting for you' }

interface PlanCardProps {
  plan: Plan
  session: string
  decides: boolean // the user may decide the plan, and it is waiting
  waits?: boolean
  title?: ReactNode // for the inbox
  agent?: string // the agent that proposes it
  aside?: ReactNode
  id?: string // of a card in a list with keyboard navigation
  decided?: () => void
}

// PlanCard is the plan of an agent, in the conversation and in the inbox. A waiting plan is decided here.
export function PlanCard({ plan, session, decides, waits, title = 'Plan', agent, aside, id, decided }: PlanCardProps) {
  return (
    <section
      aria-label="Plan"
      data-card={id}
      tabIndex={id === undefined ? undefined : 0}
      className={classes('scroll-mt-4 rounded-lg border bg-raised px-4 py-3', waits ? 'border-waiting' : 'border-line')}
    >
      <header className="flex flex-wrap items-center gap-x-2 gap-y-1 text-sm">
        {id !== undefined && <StatusBadge status="waiting">Plan</StatusBadge>}
        {agent !== undefined && <AgentGlyph name={agent} />}
        <h2 className={id === undefined ? 'grow font-semibold' : ''}>{title}</h2>
        {plan.items.length > 0 && id === undefined && (
          <span className="text-xs text-ink-soft tabular-nums">{progress(plan)}</span>
        )}
        {plan.status !== '' && id === undefined && (
          <StatusBadge status={plan.status}>{words[plan.status]}</StatusBadge>
        )}
        {aside !== undefined && <span className="ml-auto flex min-w-0 gap-3 text-xs text-ink-soft">{aside}</span>}
      </header>
      {plan.summary !== '' && (
        <p className="mt-1 text-sm">
          <Prose>{plan.summary}</Prose>
        </p>
      )}
      {plan.plan_text === undefined ? (
        <PlanItems plan={plan} className="mt-2" />
      ) : (
        <div className="mt-2 text-sm">
          <MarkdownContent text={plan.plan_text} />
        </div>
      )}
      {decides && <Decide plan={plan} session={session} decided={decided} />}
    </section>
  )
}

const signs: Record<string, [sign: string, look: string]> = {
  pending: ['○', 'text-ink-soft'],
  in_progress: ['◐', 'text-accent'],
  done: ['✓', 'text-done'],
  skipped: ['–', 'text-ink-soft'],
}

export function PlanItems({ plan, className }: { plan: Plan; className?: string }) {
  return (
    <ol className={classes('flex flex-col gap-1 text-sm', className)}>
      {plan.items.map((item, at) => {
        const [sign, look] = signs[item.status] ?? ['○', 'text-ink-soft']
        return (
          <li key={at} className="flex gap-2">
            <span className={classes('w-4 shrink-0 text-center', look)}>
              <span aria-hidden="true">{sign}</span>
              <span className="sr-only">
                {item.status === 'skipped' ? 'not marked as done' : item.status.replace('_', ' ')}
              </span>
            </span>
            <span
              className={classes(
                'min-w-0 break-words',
                item.status === 'skipped' && 'text-ink-soft',
                item.status === 'in_progress' && 'font-medium',
              )}
            >
              <Prose>{item.title}</Prose>
              {item.description !== undefined && (
                <span className="block text-xs font-normal text-ink-soft">
                  <Prose>{item.description}</Prose>
                </span>
              )}
            </span>
          </li>
        )
      })}
    </ol>
  )
}

function Decide({ plan, session, decided }: { plan: Plan; session: string; decided?: () => void }) {
  const [busy, setBusy] = useState('')
  const [problem, setProblem] = useState<{ error: unknown; again: () => void } | null>(null)
  const [fresh, setFresh] = useState(false)
  const [editing, setEditing] = useState<string | null>(null)
  const buttons = useRef<HTMLDivElement>(null)
  const { steady, still } = useSteady(buttons, true)

  const decide = async (how: 'approve' | 'reject' | 'edit', body: object) => {
    setBusy(how)
    setProblem(null)
    try {
      await ask('POST', `/api/plan/${how}`, { body: { session_id: session, ...body } })
      setEditing(null)
      decided?.()
    } catch (error) {
      setProblem({ error, again: () => void decide(how, body) })
    }
    setBusy('')
  }

  return (
    <div className="mt-3 flex flex-col gap-2 border-t border-line pt-3">
      <div ref={buttons} className="flex flex-wrap items-center gap-2">
        <Button
          kind="primary"
          small
          busy={busy === 'approve'}
          disabled={busy !== ''}
          aria-disabled={!steady || undefined}
          // As on other cards, a click right after the card has moved is ignored. A key press has no detail.
          onClick={(event) => (event.detail === 0 || still()) && void decide('approve', { clear_context: fresh })}
        >
          Approve and carry out
        </Button>
        <Button small disabled={busy !== ''} onClick={() => setEditing(asText(plan))}>
          Edit
        </Button>
        <Button
          small
          data-answer="deny"
          busy={busy === 'reject'}
          disabled={busy !== ''}
          aria-disabled={!steady || undefined}
          onClick={(event) => (event.detail === 0 || still()) && void decide('reject', {})}
        >
          Reject
        </Button>
        <label className="flex items-center gap-1.5 text-xs text-ink-soft">
          <input type="checkbox" checked={fresh} onChange={(event) => setFresh(event.target.checked)} />
          start fresh, without the earlier messages
        </label>
      </div>
      {problem !== null && (
        <ErrorState what="Your decision was not saved." error={problem.error} retry={problem.again} />
      )}
      <Dialog
        open={editing !== null}
        onOpenChange={(open) => !open && setEditing(null)}
        title="Edit the plan"
        description="The agent carries out this text once you approve it."
        wide
        actions={
          <>
            <Button onClick={() => setEditing(null)}>Cancel</Button>
            <Button
              kind="primary"
              busy={busy === 'edit'}
              disabled={(editing ?? '').trim() === ''}
              onClick={() => decide('edit', { text: editing })}
            >
              Save
            </Button>
          </>
        }
      >
        <TextArea
          aria-label="Plan"
          rows={14}
          value={editing ?? ''}
          onChange={(event) => setEditing(event.target.value)}
          className="mt-3 font-mono"
        />
      </Dialog>
    </div>
  )
}
