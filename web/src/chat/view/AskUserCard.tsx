import { useEffect, useRef, useState, type KeyboardEvent } from 'react'
import { useReplaced, wordsOf } from '../../cards/replaced'
import { ask, Problem } from '../../wire/api'
import { Button } from '../../ui/Button'
import { classes } from '../../ui/classes'
import { Diff } from '../../ui/Diff'
import { ErrorState } from '../../ui/ErrorState'
import { TextInput } from '../../ui/Field'
import { WarningIcon } from '../../ui/icons'
import { Mono } from '../../ui/Mono'
import { RelativeTime } from '../../ui/RelativeTime'
import type { Question } from '../../wire/bus.generated'
import { approvalOf } from '../model/approval'
import { useChat } from './chatContext'
import type { Card } from '../model/message'
import { Prose } from './Prose'

interface AskUserCardProps {
  card: Card
  closed?: boolean // it cannot be answered, and is shown for what it was
}

// AskUserCard is something only a person can decide: an approval, a call of which
// nobody knows whether it happened, or a question.
export function AskUserCard({ card, closed }: AskUserCardProps) {
  const { session, mayMessage } = useChat()
  const answering = useAnswer(card)
  const box = useRef<HTMLElement>(null)
  const open = !closed && mayMessage
  const single = card.questions.length === 1 ? card.questions[0] : undefined
  const kind =
    single?.header === 'Permission' ? 'Approval' : single?.header === 'Unknown' ? 'Unknown outcome' : 'Question'

  // Somebody who types is not interrupted; somebody who does nothing is led here.
  useEffect(() => {
    if (open && (document.activeElement === document.body || document.activeElement === null))
      box.current?.focus({ preventScroll: true })
  }, [open])

  return (
    <section
      ref={box}
      tabIndex={open ? 0 : undefined}
      aria-label={`${kind} wanted by ${card.agent || 'the agent'}`}
      data-card={card.question_id}
      className={classes('rounded-lg border bg-paper shadow-sm', open ? 'border-waiting' : 'border-line')}
    >
      <header
        className={classes(
          'flex items-center gap-2 rounded-t-lg border-b border-line px-4 py-2 text-sm',
          open ? 'bg-waiting-soft' : 'bg-raised',
        )}
      >
        <span aria-hidden="true" className="text-xs text-waiting">
          ◐
        </span>
        <h2 className="font-semibold">{kind}</h2>
        {card.session !== session && card.agent !== '' && (
          <span className="truncate text-ink-soft">for {card.agent}, a sub-agent</span>
        )}
        <span className="ml-auto shrink-0 text-xs text-ink-soft">
          {closed
            ? 'not open'
            : card.expires_at !== undefined && (
                <>
                  expires <RelativeTime at={card.expires_at} />
                </>
              )}
        </span>
      </header>
      <div className="px-4 py-3">
        {kind === 'Approval' ? (
          <ApprovalBody card={card} question={single!} answering={answering} open={open} box={box} />
        ) : kind === 'Unknown outcome' ? (
          <UnknownBody question={single!} answering={answering} open={open} />
        ) : (
          <QuestionsBody card={card} answering={answering} open={open} />
        )}
        {!mayMessage && !closed && <p className="mt-2 text-sm text-ink-soft">Your role may look, but not decide.</p>}
        {answering.problem !== null && (
          <ErrorState
            className="mt-3"
            what="The answer did not arrive."
            error={answering.problem.error}
            retry={answering.problem.again}
          />
        )}
      </div>
    </section>
  )
}

interface Given {
  selected: string[]
  custom_text?: string
}

interface Answering {
  busy: string // the label that was chosen
  problem: { error: unknown; again?: () => void } | null
  answer: (label: string, answers: Given[]) => void
  explain?: () => void
  explaining: boolean
}

// useAnswer sends an answer once. A card that somebody else has answered goes by
// itself: the bus says so to everybody.
function useAnswer(card: Card): Answering {
  const [busy, setBusy] = useState('')
  const [explaining, setExplaining] = useState(false)
  const [problem, setProblem] = useState<Answering['problem']>(null)
  const send = async (label: string, answers: Given[]) => {
    setBusy(label)
    setProblem(null)
    try {
      await ask('POST', '/api/ask-user-response', {
        body: {
          question_id: card.question_id,
          answers: answers.map((given, at) => ({ question_index: at, custom_text: null, ...given })),
        },
      })
      return // busy until it is gone
    } catch (error) {
      const gone = error instanceof Problem && (error.status === 410 || error.status === 404)
      setProblem({
        error: gone ? new Problem('It was answered elsewhere, or has expired.', 410) : error,
        again: gone ? undefined : () => void send(label, answers),
      })
    }
    setBusy('')
  }
  const explain = async () => {
    setExplaining(true)
    setProblem(null)
    try {
      await ask('POST', `/api/v1/approvals/${card.question_id}`, { body: { decision: 'explain' } })
    } catch (error) {
      setExplaining(false)
      setProblem({ error, again: () => void explain() })
    }
  }
  return {
    busy,
    problem,
    explaining,
    answer: (label, answers) => void send(label, answers),
    explain: () => void explain(),
  }
}

interface BodyProps {
  question: Question
  answering: Answering
  open: boolean
}

const once = 'Allow once'
const always = 'Always allow exactly this'
const deny = 'Deny'

function ApprovalBody({
  card,
  question,
  answering,
  open,
  box,
}: BodyProps & { card: Card; box: React.RefObject<HTMLElement | null> }) {
  const approval = approvalOf(question)
  const replaced = useReplaced(approval.tool, approval.show)
  const risks = replaced === null ? approval.risks : [wordsOf(replaced), ...approval.risks]
  const [note, setNote] = useState<string | null>(null)
  const [exact, setExact] = useState(!approval.patch)
  const denyButton = useRef<HTMLButtonElement>(null)
  const risky = risks.length > 0
  const decide = (label: string) =>
    answering.answer(label, [{ selected: [label], custom_text: note?.trim() ? note.trim() : undefined }])

  // Enter and Backspace on the card itself; in a field they are what they are.
  useEffect(() => {
    const element = box.current
    if (element === null || !open) return
    const press = (event: globalThis.KeyboardEvent) => {
      if (event.target !== element || answering.busy !== '') return
      if (event.key === 'Backspace') decide(deny)
      else if (event.key === 'Enter' && risky) denyButton.current?.focus()
      else if (event.key === 'Enter') decide(once)
      else return
      event.preventDefault()
    }
    element.addEventListener('keydown', press)
    return () => element.removeEventListener('keydown', press)
  })

  return (
    <>
      <p className="flex flex-wrap items-center gap-2 text-sm">
        <span>
          The agent wants to call <Mono className="font-medium">{approval.tool}</Mono>
        </span>
        {approval.patch && (
          <Button small kind="quiet" className="ml-auto" aria-pressed={exact} onClick={() => setExact(!exact)}>
            {exact ? 'View diff' : 'View exact text'}
          </Button>
        )}
      </p>
      {risky && (
        <ul className="mt-2 flex flex-col gap-1 rounded-md border border-failed bg-failed-soft px-3 py-2 text-sm">
          {risks.map((risk) => (
            <li key={risk} className="flex items-start gap-2">
              <WarningIcon className="mt-1 shrink-0 text-failed" />
              <span className="min-w-0 break-words">
                <Mono className="bg-transparent px-0 font-sans text-sm">{risk}</Mono>
              </span>
            </li>
          ))}
        </ul>
      )}
      <div className="mt-2">
        {exact || !approval.patch ? (
          <Exact text={approval.show} />
        ) : (
          <Diff text={approval.show} label="What would be changed" />
        )}
      </div>
      {open && (
        <>
          {note !== null && (
            <TextInput
              autoFocus
              className="mt-3"
              aria-label="Note to the agent"
              placeholder="A note: the agent is told"
              value={note}
              onChange={(event) => setNote(event.target.value)}
              onKeyDown={(event) => event.key === 'Escape' && setNote(null)}
            />
          )}
          <div className="mt-3 flex flex-wrap items-center gap-2">
            <Button
              kind={risky ? 'plain' : 'primary'}
              small
              disabled={answering.busy !== ''}
              busy={answering.busy === once}
              onClick={() => decide(once)}
            >
              Allow once {!risky && <Key>↵</Key>}
            </Button>
            <Button
              small
              disabled={answering.busy !== ''}
              busy={answering.busy === always}
              title="Exactly this, for the rest of the session"
              onClick={() => decide(always)}
            >
              Always
            </Button>
            <Button
              ref={denyButton}
              kind={risky ? 'primary' : 'plain'}
              small
              disabled={answering.busy !== ''}
              busy={answering.busy === deny}
              onClick={() => decide(deny)}
            >
              Deny <Key>⌫</Key>
            </Button>
            <Button
              small
              kind="quiet"
              disabled={card.explained || answering.explaining || answering.busy !== ''}
              onClick={answering.explain}
            >
              {card.explained ? 'Explained above' : answering.explaining ? 'Explaining…' : 'Explain'}
            </Button>
            {note === null && (
              <Button small kind="quiet" onClick={() => setNote('')}>
                Add a note
              </Button>
            )}
          </div>
        </>
      )}
    </>
  )
}

function Key({ children }: { children: string }) {
  return (
    <kbd aria-hidden="true" className="font-mono text-xs opacity-70">
      {children}
    </kbd>
  )
}

const shownAtOnce = 4000

// Exact shows every byte; what is long is cut only until somebody wants the rest,
// and says so.
export function Exact({ text }: { text: string }) {
  const [all, setAll] = useState(text.length <= shownAtOnce)
  return (
    <>
      <Mono block className="max-h-96">
        {all ? text : text.slice(0, shownAtOnce)}
      </Mono>
      {!all && (
        <p className="mt-1 flex items-center gap-2 text-sm text-waiting">
          {text.length - shownAtOnce} more characters are not shown.
          <Button small onClick={() => setAll(true)}>
            Show all of it
          </Button>
        </p>
      )}
    </>
  )
}

function UnknownBody({ question, answering, open }: BodyProps) {
  return (
    <>
      <p className="text-sm">The server stopped while this call ran: nobody knows whether it happened.</p>
      <div className="mt-2">
        <Exact text={question.question} />
      </div>
      {open && (
        <div className="mt-3 flex flex-wrap gap-2">
          {question.options.map((option) => (
            <Button
              key={option.label}
              small
              disabled={answering.busy !== ''}
              busy={answering.busy === option.label}
              onClick={() => answering.answer(option.label, [{ selected: [option.label] }])}
            >
              {option.label}
            </Button>
          ))}
        </div>
      )}
    </>
  )
}

function QuestionsBody({ card, answering, open }: { card: Card; answering: Answering; open: boolean }) {
  const [given, setGiven] = useState<Given[]>(() => card.questions.map(() => ({ selected: [] })))
  const set = (at: number, next: Given) => setGiven(given.with(at, next))
  const complete = given.every((g) => g.selected.length > 0 || (g.custom_text ?? '').trim() !== '')
  const single = card.questions.length === 1 && !card.questions[0]!.multi_select
  const send = () =>
    answering.answer(
      'Answer',
      given.map((g) => ({ selected: g.selected, custom_text: g.custom_text?.trim() || undefined })),
    )
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (complete) send()
      }}
      className="flex flex-col gap-4"
    >
      {card.questions.map((question, at) => (
        <fieldset key={at} disabled={!open || answering.busy !== ''} className="min-w-0">
          <legend className="mb-2 text-sm">
            {question.header !== '' && (
              <span className="mr-2 rounded bg-sunken px-1.5 py-0.5 text-xs text-ink-soft">{question.header}</span>
            )}
            <span className="font-medium">
              <Prose>{question.question}</Prose>
            </span>
            {question.multi_select && <span className="text-ink-soft"> (any number)</span>}
          </legend>
          <div className="flex flex-col gap-1.5">
            {question.options.map((option) => (
              <Choice
                key={option.label}
                option={option}
                many={question.multi_select}
                name={`${card.question_id}-${at}`}
                chosen={given[at]!.selected.includes(option.label)}
                onChoose={(is) => {
                  const others = question.multi_select
                    ? given[at]!.selected.filter((label) => label !== option.label)
                    : []
                  const selected = is ? [...others, option.label] : others
                  set(at, { ...given[at]!, selected })
                }}
              />
            ))}
            {open && (
              <TextInput
                aria-label={`Another answer to: ${question.question}`}
                placeholder={question.options.length > 0 ? 'Or in your own words' : 'Your answer'}
                value={given[at]!.custom_text ?? ''}
                onChange={(event) => set(at, { ...given[at]!, custom_text: event.target.value })}
                onKeyDown={(event: KeyboardEvent) =>
                  event.key === 'Escape' && set(at, { ...given[at]!, custom_text: '' })
                }
              />
            )}
          </div>
        </fieldset>
      ))}
      {open && (
        <div>
          <Button type="submit" kind="primary" small disabled={!complete} busy={answering.busy !== ''}>
            {single ? 'Answer' : 'Answer all'}
          </Button>
        </div>
      )}
    </form>
  )
}

function Choice({
  option,
  many,
  name,
  chosen,
  onChoose,
}: {
  option: Question['options'][number]
  many: boolean
  name: string
  chosen: boolean
  onChoose: (is: boolean) => void
}) {
  return (
    <label
      className={classes(
        'flex cursor-pointer items-start gap-2 rounded-md border px-3 py-1.5',
        'text-sm has-[:focus-visible]:outline-2 has-[:focus-visible]:outline-accent',
        chosen ? 'border-accent bg-accent-soft' : 'border-line hover:bg-sunken',
      )}
    >
      <input
        type={many ? 'checkbox' : 'radio'}
        name={name}
        checked={chosen}
        onChange={(event) => onChoose(event.target.checked)}
        className="mt-1 accent-accent"
      />
      <span className="min-w-0 break-words">
        <Prose>{option.label}</Prose>
        {option.description !== null && (
          <span className="block text-xs text-ink-soft">
            <Prose>{option.description}</Prose>
          </span>
        )}
        {option.preview !== null && (
          <Mono block className="mt-1 max-h-40 text-xs">
            {option.preview}
          </Mono>
        )}
      </span>
    </label>
  )
}
