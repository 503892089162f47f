import { Link } from '@tanstack/react-router'
import { useRef, useState, type KeyboardEvent, type ReactNode } from 'react'
import { useTitles } from '../runs/titles'
import { Button } from '../ui/Button'
import { ErrorState } from '../ui/ErrorState'
import { input } from '../ui/Field'
import { Exact, Mono } from '../ui/Mono'
import { RelativeTime } from '../ui/RelativeTime'
import { StatusBadge } from '../ui/StatusBadge'
import type { Card } from '../wire/native.generated'
import { ExplainButton, Explanation, useExplanation } from '../approvals/Explanation'
import { QuestionForm } from './QuestionForm'
import { useReplaced } from './replaced'
import { risky } from './show'
import { What } from './What'
import { classes } from '../ui/classes'

export type Answer = (card: Card, path: string, body: unknown) => Promise<void>

interface CardViewProps {
  card: Card
  may: boolean // answer
  answer: Answer
}

const words: Record<string, string> = {
  approval: 'wants to use',
  question: 'asks',
  call: 'does not know what became of',
}

// CardView is one thing that waits. It can be focused; on a focused card Enter
// allows and Backspace denies, unless that is dangerous: then the answer that
// changes nothing has the focus, and Enter gives that.
export function CardView({ card, may, answer }: CardViewProps) {
  const replaces = useReplaced(card.tool, card.show ?? '') !== null
  const danger = card.kind === 'approval' && risky(card.tool, card.show ?? '', card.arguments, card.why, replaces)
  const element = useRef<HTMLElement>(null)
  const titleOf = useTitles()
  const press = (name: string) =>
    element.current?.querySelector<HTMLButtonElement>(`button[data-answer="${name}"]`)?.click()
  const onKeyDown = (event: KeyboardEvent) => {
    const typing = event.target instanceof HTMLElement && ['INPUT', 'TEXTAREA', 'SELECT'].includes(event.target.tagName)
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return
    if (event.key === 'Backspace') press('deny')
    else if (event.key === 'Enter' && event.target === element.current && !danger) press('allow')
    else return
    event.preventDefault()
  }
  return (
    <article
      ref={element}
      tabIndex={-1}
      data-card={card.id}
      data-danger={danger || undefined}
      aria-label={`${card.agent} ${words[card.kind]} ${card.kind === 'question' ? 'something' : card.tool}`}
      onKeyDown={onKeyDown}
      className={classes(
        'flex scroll-mt-4 flex-col gap-3 rounded-lg border border-line bg-raised p-4',
        'focus:border-accent focus:outline-2 focus:outline-offset-2 focus:outline-accent',
      )}
    >
      <header className="flex flex-wrap items-center gap-x-2 gap-y-1 text-sm">
        <StatusBadge status="waiting">
          {card.kind === 'approval' ? 'Approval' : card.kind === 'question' ? 'Question' : 'Unknown outcome'}
        </StatusBadge>
        <span>
          <strong className="font-semibold">{card.agent}</strong> {words[card.kind]}{' '}
          {card.kind !== 'question' && <Mono>{card.tool}</Mono>}
        </span>
        <span className="ml-auto flex min-w-0 gap-3 text-xs text-ink-soft">
          <Link
            to="/chat/$session"
            params={{ session: card.root }}
            className="max-w-64 truncate text-accent underline-offset-2 hover:underline"
          >
            <Exact>{titleOf(card.root) ?? 'Conversation'}</Exact>
          </Link>
          <span className="shrink-0">
            <RelativeTime at={card.asked_at} />
            {card.expires !== undefined && (
              <>
                , expires <RelativeTime at={card.expires} />
              </>
            )}
          </span>
        </span>
      </header>
      {card.kind === 'approval' && <Approval card={card} may={may} answer={answer} danger={danger} />}
      {card.kind === 'question' && <Asked card={card} may={may} answer={answer} />}
      {card.kind === 'call' && <Unknown card={card} may={may} answer={answer} />}
    </article>
  )
}

// useAnswer runs one answer at a time and keeps what went wrong.
function useAnswer(card: Card, answer: Answer) {
  const [sent, setSent] = useState<string>()
  const [problem, setProblem] = useState<unknown>(null)
  const give = async (name: string, path: string, body: unknown) => {
    setSent(name)
    setProblem(null)
    try {
      await answer(card, path, body)
    } catch (error) {
      setProblem(error)
    }
    setSent(undefined)
  }
  return { sent, problem, give }
}

function Failed({ problem }: { problem: unknown }) {
  return problem === null ? null : <ErrorState what="The answer was not taken." error={problem} />
}

function Looking({ may, children }: { may: boolean; children: ReactNode }) {
  return may ? (
    children
  ) : (
    <p className="text-sm text-ink-soft">You may look at this, and not answer it: that needs agents:message.</p>
  )
}

function NoteInput({ note, setNote }: { note: string; setNote: (note: string) => void }) {
  return (
    <input
      aria-label="Note for the agent"
      placeholder="Note for the agent (optional)"
      className={input}
      value={note}
      onChange={(event) => setNote(event.target.value)}
    />
  )
}

function Approval({ card, may, answer, danger }: CardViewProps & { danger: boolean }) {
  const [note, setNote] = useState('')
  const { sent, problem, give } = useAnswer(card, answer)
  const explanation = useExplanation(card)
  const decide = (decision: string) =>
    give(decision, `/api/v1/approvals/${card.id}`, { decision, note: note.trim() || undefined, digest: card.digest })
  const busy = sent !== undefined
  return (
    <>
      <What tool={card.tool} show={card.show ?? ''} args={card.arguments} why={card.why} />
      <Explanation of={explanation} />
      <Failed problem={problem} />
      <Looking may={may}>
        <NoteInput note={note} setNote={setNote} />
        <div className="flex flex-wrap gap-2">
          <Button
            kind={danger ? 'plain' : 'primary'}
            busy={sent === 'allow'}
            disabled={busy}
            data-answer="allow"
            onClick={() => decide('allow')}
          >
            Allow once {!danger && <Key>↵</Key>}
          </Button>
          <Button
            busy={sent === 'always'}
            disabled={busy}
            data-answer="always"
            title="Exactly this, for the rest of the session"
            onClick={() => decide('always')}
          >
            Always
          </Button>
          <Button
            kind={danger ? 'primary' : 'plain'}
            busy={sent === 'deny'}
            disabled={busy}
            data-answer="deny"
            onClick={() => decide('deny')}
          >
            Deny <Key>⌫</Key>
          </Button>
          <Button
            kind="danger"
            busy={sent === 'stop'}
            disabled={busy}
            data-answer="stop"
            onClick={() => decide('stop')}
          >
            Deny and stop
          </Button>
          <span className="grow" />
          <ExplainButton of={explanation} />
        </div>
      </Looking>
    </>
  )
}

function Asked({ card, may, answer }: CardViewProps) {
  const { sent, problem, give } = useAnswer(card, answer)
  const questions = card.questions ?? []
  return (
    <>
      <Failed problem={problem} />
      {may ? (
        <QuestionForm
          questions={questions}
          busy={sent !== undefined}
          answer={(answers) => void give('answer', `/api/v1/questions/${card.id}`, { answers })}
        />
      ) : (
        <>
          {questions.map((question, at) => (
            <p key={at} className="font-medium">
              <Exact>{question.question}</Exact>
            </p>
          ))}
          <Looking may={may}>{null}</Looking>
        </>
      )}
    </>
  )
}

function Unknown({ card, may, answer }: CardViewProps) {
  const [note, setNote] = useState('')
  const { sent, problem, give } = useAnswer(card, answer)
  const resolve = (resolution: string) =>
    give(resolution, `/api/v1/calls/${card.id}`, { resolution, note: note.trim() || undefined })
  const busy = sent !== undefined
  return (
    <>
      <p className="text-sm">
        The server stopped while this ran, and nobody knows whether it happened. Look, and say what became of it.
      </p>
      <Mono block className="max-h-[40dvh]">
        {card.arguments}
      </Mono>
      <Failed problem={problem} />
      <Looking may={may}>
        <NoteInput note={note} setNote={setNote} />
        <div className="flex flex-wrap gap-2">
          <Button
            busy={sent === 'mark_done'}
            disabled={busy}
            data-answer="mark_done"
            onClick={() => resolve('mark_done')}
          >
            It was done
          </Button>
          <Button
            busy={sent === 'rerun'}
            disabled={busy}
            data-answer="rerun"
            title="If it did happen, it happens twice"
            onClick={() => resolve('rerun')}
          >
            Run it again
          </Button>
          <Button
            kind="danger"
            busy={sent === 'abandon'}
            disabled={busy}
            data-answer="deny"
            onClick={() => resolve('abandon')}
          >
            Stop the run <Key>⌫</Key>
          </Button>
        </div>
      </Looking>
    </>
  )
}

export function Key({ children }: { children: ReactNode }) {
  return (
    <kbd aria-hidden="true" className="font-sans text-xs opacity-75">
      {children}
    </kbd>
  )
}
