import { useEffect, useRef, useState, type KeyboardEvent, type ReactNode, type RefObject } from 'react'
import { AgentGlyph } from '../ui/AgentGlyph'
import { Button } from '../ui/Button'
import { ErrorState } from '../ui/ErrorState'
import { TextInput } from '../ui/Field'
import { Exact, Mono } from '../ui/Mono'
import { StatusBadge } from '../ui/StatusBadge'
import { classes } from '../ui/classes'
import { Problem } from '../wire/api'
import { kindOf, titleOf, type CardContent, type Decision, type Reply, type Resolution } from './content'
import { QuestionForm } from './QuestionForm'
import { useReplaced } from './replaced'
import { risky } from './show'
import { useSteady } from './steady'
import { What } from './What'

interface CardProps {
  id: string
  agent: string
  content: CardContent
  project?: string // the project of its conversation; none: the first
  may: boolean // the user may answer it
  closed?: boolean // it cannot be answered, and is shown as a record
  disabled?: boolean // answers cannot be sent at present
  reply: (reply: Reply) => void | Promise<void>
  aside?: ReactNode // in the header
  note?: 'shown' | 'folded' // how the field for a note is shown, if an answer can carry one
  explanation: Explaining
  takesFocus?: boolean // if no other element has the focus
}

// An Explaining holds the request to the model to explain an approval.
export interface Explaining {
  ask: () => void
  asked?: 'waiting' | 'done' // the explanation was already requested
  text?: ReactNode // where the card shows the explanation
}

// Card is a request that waits for a person, on any page. Every approval has the same five answers: allow, always,
// deny, deny and stop, explain. If the server offers a rule, always may cover similar calls. On a focused card Enter
// allows and Backspace denies; if the call is dangerous, Enter goes to the answer that changes nothing.
export function Card(props: CardProps) {
  const { id, agent, content, project, may, closed = false, reply, aside, takesFocus, ...offers } = props
  const element = useRef<HTMLElement>(null)
  const danger = useDanger(content, project)
  const answering = useAnswer(reply)
  const open = may && !closed
  const answers = useRef<HTMLDivElement>(null)
  const { steady, still, shown } = useSteady(answers, open)
  const title = titleOf(agent, content)

  useEffect(() => {
    const idle = document.activeElement === document.body || document.activeElement === null
    if (takesFocus && open && idle) element.current?.focus({ preventScroll: true })
  }, [takesFocus, open])

  const button = (name: string) => element.current?.querySelector<HTMLButtonElement>(`button[data-answer="${name}"]`)
  const onKeyDown = (event: KeyboardEvent) => {
    const typing = event.target instanceof HTMLElement && ['INPUT', 'TEXTAREA', 'SELECT'].includes(event.target.tagName)
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return
    if (!shown() && (event.key === 'Backspace' || event.key === 'Enter')) return event.preventDefault()
    if (event.key === 'Backspace') button('deny')?.click()
    else if (event.key !== 'Enter' || event.target !== element.current) return
    else if (danger) button('deny')?.focus()
    else button('allow')?.click()
    event.preventDefault()
  }
  return (
    <article
      ref={element}
      tabIndex={open ? 0 : -1}
      data-card={id}
      data-danger={danger || undefined}
      aria-label={title.before + title.tool + title.after}
      onKeyDown={onKeyDown}
      className={classes(
        'flex scroll-mt-4 flex-col gap-3 rounded-lg border bg-raised p-4',
        'focus:border-accent focus:outline-2 focus:outline-offset-2 focus:outline-accent',
        open ? 'border-waiting' : 'border-line',
      )}
    >
      <header className="flex flex-wrap items-center gap-x-2 gap-y-1 text-sm">
        <StatusBadge status="waiting">{kindOf(content)}</StatusBadge>
        {agent !== '' && <AgentGlyph name={agent} />}
        <h2>
          {title.before}
          {title.tool !== '' && <Mono>{title.tool}</Mono>}
          {title.after}
        </h2>
        <span className="ml-auto flex min-w-0 gap-3 text-xs text-ink-soft">
          {closed ? 'This is text from the model: nothing waits for an answer.' : aside}
        </span>
      </header>
      <Body
        content={content}
        project={project}
        open={open}
        danger={danger}
        answering={answering}
        answers={answers}
        steady={steady}
        still={still}
        {...offers}
      />
      {!may && !closed && (
        <p className="text-sm text-ink-soft">You can read this, but not answer it: that needs agents:message.</p>
      )}
      {answering.problem !== null && (
        <ErrorState what="Your answer was not accepted." error={answering.problem} retry={answering.again} />
      )}
    </article>
  )
}

// useDanger reports whether the answer that changes nothing should be the default.
function useDanger(content: CardContent, project?: string): boolean {
  const { tool, show, args, why } = content.kind === 'approval' ? content : { tool: '', show: '' }
  const replaces = useReplaced(tool, show, project) !== null
  return content.kind === 'approval' && risky(tool, show, args, why, replaces)
}

interface Answering {
  sent: string | undefined // the answer that is being sent, or has arrived: the card goes when the server says so
  problem: unknown
  again?: () => void
  give: (name: string, reply: Reply) => void
}

// useAnswer sends one answer at a time, and lets the user retry one that did not arrive.
function useAnswer(reply: CardProps['reply']): Answering {
  const [sent, setSent] = useState<string>()
  const [failed, setFailed] = useState<{ problem: unknown; again?: () => void }>({ problem: null })
  const give = async (name: string, answer: Reply) => {
    setSent(name)
    setFailed({ problem: null })
    try {
      await reply(answer)
    } catch (problem) {
      const lasting = problem instanceof Problem && !problem.again
      setFailed({ problem, again: lasting ? undefined : () => void give(name, answer) })
      setSent(undefined)
    }
  }
  return { sent, ...failed, give: (name, answer) => void give(name, answer) }
}

interface BodyProps extends Pick<CardProps, 'project' | 'disabled' | 'note' | 'explanation'> {
  content: CardContent
  open: boolean
  danger: boolean
  answering: Answering
  answers: RefObject<HTMLDivElement | null> // the row of buttons
  steady: boolean // they have not moved for a moment
  still: () => boolean // the same, checked right now
}

function Body({
  content,
  project,
  open,
  danger,
  answering,
  answers,
  steady,
  still,
  disabled = false,
  note,
  explanation,
}: BodyProps) {
  const [text, setText] = useState('')
  const [noting, setNoting] = useState(note === 'shown')
  const { sent, give } = answering
  const off = disabled || sent !== undefined
  if (content.kind === 'question')
    return (
      <QuestionForm
        questions={content.questions}
        open={open}
        disabled={disabled}
        busy={sent !== undefined}
        answer={(answers) => give('answer', { kind: 'question', answers })}
      />
    )
  const noted = { note: text.trim() || undefined }
  const choices: Choice[] =
    content.kind === 'approval'
      ? approvals(danger, content.similar !== undefined).map((choice) => ({
          ...choice,
          give: () => give(choice.name, { kind: 'approval', ...decisionOf(choice.name), ...noted }),
        }))
      : calls.map((choice) => ({
          ...choice,
          give: () => give(choice.name, { kind: 'call', resolution: choice.name, ...noted }),
        }))
  return (
    <>
      {content.kind === 'approval' ? (
        <What tool={content.tool} show={content.show} args={content.args} why={content.why} project={project} />
      ) : (
        <>
          <p className="text-sm">
            The server stopped while this call was running, so it is not known whether it took effect. Check, then
            choose.
          </p>
          <Mono block className="max-h-[40dvh]">
            {content.text}
          </Mono>
        </>
      )}
      {content.kind === 'approval' && content.similar !== undefined && (
        <p className="text-sm text-ink-soft">
          Always similar allows <Exact>{content.similar}</Exact>, for the rest of the conversation.
        </p>
      )}
      {content.kind === 'approval' && explanation.text}
      {open && noting && (
        <TextInput
          autoFocus={note === 'folded'}
          aria-label="Note for the agent"
          placeholder="Note for the agent (optional)"
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => event.key === 'Escape' && setText('')}
        />
      )}
      {open && (
        <div ref={answers} className="flex flex-wrap gap-2">
          {choices.map((choice) => (
            <Button
              key={choice.name}
              aria-disabled={!steady || undefined}
              kind={choice.kind}
              title={choice.title}
              data-answer={choice.key === '⌫' ? 'deny' : choice.name}
              busy={sent === choice.name}
              disabled={off}
              // A key press has no detail. The button was focused on purpose.
              onClick={(event) => (event.detail === 0 || still()) && choice.give()}
            >
              {choice.words} {choice.key !== undefined && <Key>{choice.key}</Key>}
            </Button>
          ))}
          {note === 'folded' && !noting && (
            <Button kind="quiet" onClick={() => setNoting(true)}>
              Add a note
            </Button>
          )}
          <span className="grow" />
          {content.kind === 'approval' && (
            <Button
              kind="quiet"
              data-answer="explain"
              disabled={disabled || explanation.asked !== undefined}
              onClick={explanation.ask}
            >
              {explanation.asked === undefined ? 'Explain' : explained[explanation.asked]}
            </Button>
          )}
        </div>
      )}
    </>
  )
}

interface Option<Name extends string> {
  name: Name
  words: string
  kind?: 'plain' | 'primary' | 'danger'
  key?: string
  title?: string
}

type Choice = Option<string> & { give: () => void }

const explained = { waiting: 'Explaining…', done: 'Explained above' }

function decisionOf(name: Decision | 'similar'): { decision: Decision; scope?: 'similar' } {
  return name === 'similar' ? { decision: 'always', scope: 'similar' } : { decision: name }
}

function approvals(danger: boolean, similar: boolean): Option<Decision | 'similar'>[] {
  const rule: Option<'similar'> = {
    name: 'similar',
    words: 'Always similar',
    title: 'Allow similar calls, too, for the rest of the conversation',
  }
  return [
    { name: 'allow', words: 'Allow once', kind: danger ? 'plain' : 'primary', key: danger ? undefined : '↵' },
    { name: 'always', words: 'Always', title: 'Allow exactly this for the rest of the conversation' },
    ...(similar ? [rule] : []),
    { name: 'deny', words: 'Deny', kind: danger ? 'primary' : 'plain', key: '⌫' },
    { name: 'stop', words: 'Deny and stop', kind: 'danger', title: 'Deny, and stop the run' },
  ]
}

const calls: Option<Resolution>[] = [
  { name: 'mark_done', words: 'It was done' },
  { name: 'rerun', words: 'Run it again', title: 'If it did take effect, it takes effect twice' },
  { name: 'abandon', words: 'Stop the run', kind: 'danger', key: '⌫' },
]

function Key({ children }: { children: string }) {
  return (
    <kbd aria-hidden="true" className="font-sans text-xs opacity-75 max-md:hidden pointer-coarse:hidden">
      {children}
    </kbd>
  )
}
