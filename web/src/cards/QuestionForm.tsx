import { useId, useState, type FormEvent } from 'react'
import { Button } from '../ui/Button'
import { classes } from '../ui/classes'
import { TextInput } from '../ui/Field'
import { Exact, Mono } from '../ui/Mono'
import type { Answer, Question } from './content'

interface QuestionFormProps {
  questions: Question[]
  open: boolean // it can be answered
  disabled: boolean
  busy: boolean
  answer: (answers: Answer[]) => void
}

// QuestionForm asks the questions of an agent. Each takes a choice, a typed answer, or both.
export function QuestionForm({ questions, open, disabled, busy, answer }: QuestionFormProps) {
  const [given, setGiven] = useState<Answer[]>(() => questions.map(() => ({ selected: [] })))
  const all = given.map(({ selected, custom_text }) => {
    const typed = custom_text?.trim() ?? ''
    return typed === '' ? { selected } : { selected, custom_text: typed }
  })
  const ready = all.every(({ selected, custom_text }) => selected.length > 0 || custom_text !== undefined)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (ready && !busy && !disabled) answer(all)
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      {questions.map((question, at) => (
        <One
          key={at}
          question={question}
          open={open}
          disabled={!open || busy}
          given={given[at]!}
          change={(next) => setGiven(given.with(at, next))}
        />
      ))}
      {open && (
        <div>
          <Button type="submit" kind="primary" disabled={!ready || disabled} busy={busy}>
            {questions.length === 1 ? 'Answer' : 'Answer all'}
          </Button>
        </div>
      )}
    </form>
  )
}

interface OneProps {
  question: Question
  open: boolean
  disabled: boolean
  given: Answer
  change: (next: Answer) => void
}

function One({ question, open, disabled, given, change }: OneProps) {
  const id = useId()
  const several = question.multi_select ?? false
  const options = question.options ?? []
  const choose = (label: string, on: boolean) => {
    const others = several ? given.selected.filter((other) => other !== label) : []
    change({ ...given, selected: on ? [...others, label] : others })
  }
  return (
    <fieldset disabled={disabled} className="flex min-w-0 flex-col gap-2">
      <legend className="mb-1">
        {question.header !== undefined && question.header !== '' && (
          <span className="block text-xs text-ink-soft">
            <Exact>{question.header}</Exact>
          </span>
        )}
        <span className="whitespace-pre-wrap break-words font-medium">
          <Exact>{question.question}</Exact>
        </span>
        {several && <span className="text-ink-soft"> (choose any number)</span>}
      </legend>
      {options.map((option) => (
        <label
          key={option.label}
          className={classes(
            'flex cursor-pointer items-start gap-3 rounded-md border border-line bg-paper px-3 py-2 text-sm',
            'has-[:checked]:border-accent has-[:checked]:bg-accent-soft',
            'has-[:focus-visible]:outline-2 has-[:focus-visible]:outline-accent',
          )}
        >
          <input
            type={several ? 'checkbox' : 'radio'}
            name={id}
            className="mt-1 accent-accent"
            checked={given.selected.includes(option.label)}
            onChange={(event) => choose(option.label, event.target.checked)}
          />
          <span className="min-w-0 break-words">
            <Exact>{option.label}</Exact>
            {option.description && (
              <span className="block text-xs text-ink-soft">
                <Exact>{option.description}</Exact>
              </span>
            )}
            {option.preview && (
              <Mono block className="mt-1 max-h-40 text-xs">
                {option.preview}
              </Mono>
            )}
          </span>
        </label>
      ))}
      {open && (
        <TextInput
          aria-label={
            options.length > 0 ? `Another answer to: ${question.question}` : `Answer to: ${question.question}`
          }
          placeholder={options.length > 0 ? 'Or answer in your own words' : 'Your answer'}
          value={given.custom_text ?? ''}
          onChange={(event) => change({ ...given, custom_text: event.target.value })}
          onKeyDown={(event) => event.key === 'Escape' && change({ ...given, custom_text: '' })}
        />
      )}
    </fieldset>
  )
}
