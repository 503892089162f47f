import { useState } from 'react'
import { ask } from '../../wire/api'
import type { Plan } from '../../wire/bus.generated'
import { asText, progress } from '../model/plan'
import { Button } from '../../ui/Button'
import { classes } from '../../ui/classes'
import { Dialog } from '../../ui/Dialog'
import { ErrorState } from '../../ui/ErrorState'
import { TextArea } from '../../ui/Field'
import { StatusBadge } from '../../ui/StatusBadge'
import { useChat } from './chatContext'
import { MarkdownContent } from './MarkdownContent'
import { Prose } from './Prose'

const words: Record<string, string> = { planned: 'waiting for you' }

// PlanBlock shows the plan of the agent. A plan that waits for approval is decided here.
export function PlanBlock({ plan, deciding }: { plan: Plan; deciding?: boolean }) {
  const { mayMessage } = useChat()
  return (
    <section
      aria-label="Plan"
      className={classes('rounded-lg border bg-raised px-4 py-3', deciding ? 'border-waiting' : 'border-line')}
    >
      <header className="flex items-center gap-2 text-sm">
        <h2 className="grow font-semibold">Plan</h2>
        {plan.items.length > 0 && (
          <span className="text-xs text-ink-soft tabular-nums">
            {progress(plan)}
          </span>
        )}
        {plan.status !== '' && <StatusBadge status={plan.status}>{words[plan.status]}</StatusBadge>}
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
      {deciding && mayMessage && <Decide plan={plan} />}
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

function Decide({ plan }: { plan: Plan }) {
  const { session } = useChat()
  const [busy, setBusy] = useState('')
  const [problem, setProblem] = useState<{ error: unknown; again: () => void } | null>(null)
  const [fresh, setFresh] = useState(false)
  const [editing, setEditing] = useState<string | null>(null)

  const decide = async (how: 'approve' | 'reject' | 'edit', body: object) => {
    setBusy(how)
    setProblem(null)
    try {
      await ask('POST', `/api/plan/${how}`, { body: { session_id: session, ...body } })
      setEditing(null)
    } catch (error) {
      setProblem({ error, again: () => void decide(how, body) })
    }
    setBusy('')
  }

  return (
    <div className="mt-3 flex flex-col gap-2 border-t border-line pt-3">
      <div className="flex flex-wrap items-center gap-2">
        <Button
          kind="primary"
          small
          busy={busy === 'approve'}
          disabled={busy !== ''}
          onClick={() => decide('approve', { clear_context: fresh })}
        >
          Approve and carry out
        </Button>
        <Button small disabled={busy !== ''} onClick={() => setEditing(asText(plan))}>
          Edit
        </Button>
        <Button small busy={busy === 'reject'} disabled={busy !== ''} onClick={() => decide('reject', {})}>
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
