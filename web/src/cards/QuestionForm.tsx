import { useId, useState, type FormEvent } from 'react'
import { Button } from '../ui/Button'
import { input } from '../ui/Field'
import { Exact } from '../ui/Mono'
import type { Question } from '../wire/native.generated'
import { classes } from '../ui/classes'

interface QuestionFormProps {
  questions: Question[]
  busy?: boolean
  answer: (answers: string[][]) => void
}

// An Answer is what is chosen, and what is typed besides.
interface Answer {
  chosen: string[]
  typed: string
}

// QuestionForm asks what an agent asks. Every question takes a choice, words of
// one's own, or both where several may be chosen.
export function QuestionForm({ questions, busy, answer }: QuestionFormProps) {
  const [given, setGiven] = useState<Answer[]>(() => questions.map(() => ({ chosen: [], typed: '' })))
  const all = given.map(({ chosen, typed }) => (typed.trim() === '' ? chosen : [...chosen, typed.trim()]))
  const ready = all.every((one) => one.length > 0)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (ready && !busy) answer(all)
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      {questions.map((question, at) => (
        <One
          key={at}
          question={question}
          given={given[at]!}
          change={(next) => setGiven(given.map((one, i) => (i === at ? next : one)))}
        />
      ))}
      <div>
        <Button type="submit" kind="primary" disabled={!ready} busy={busy}>
          Answer
        </Button>
      </div>
    </form>
  )
}

function One({ question, given, change }: { question: Question; given: Answer; change: (next: Answer) => void }) {
  const id = useId()
  const several = question.multi_select ?? false
  const options = question.options ?? []
  const choose = (label: string, on: boolean) => {
    if (several)
      change({ ...given, chosen: on ? [...given.chosen, label] : given.chosen.filter((other) => other !== label) })
    else change({ chosen: [label], typed: '' })
  }
  return (
    <fieldset className="flex min-w-0 flex-col gap-2">
      <legend className="mb-1">
        {question.header !== undefined && question.header !== '' && (
          <span className="block text-xs text-ink-soft">
            <Exact>{question.header}</Exact>
          </span>
        )}
        <span className="whitespace-pre-wrap break-words font-medium">
          <Exact>{question.question}</Exact>
        </span>
      </legend>
      {options.map((option) => (
        <label
          key={option.label}
          className={classes(
            'flex cursor-pointer items-start gap-3 rounded-md border border-line bg-paper',
            'px-3 py-2 text-sm has-[:checked]:border-accent has-[:checked]:bg-accent-soft',
          )}
        >
          <input
            type={several ? 'checkbox' : 'radio'}
            name={id}
            className="mt-1 accent-accent"
            checked={given.chosen.includes(option.label)}
            onChange={(event) => choose(option.label, event.target.checked)}
          />
          <span>
            <Exact>{option.label}</Exact>
            {option.description !== undefined && (
              <span className="block text-xs text-ink-soft">
                <Exact>{option.description}</Exact>
              </span>
            )}
          </span>
        </label>
      ))}
      <input
        aria-label={options.length > 0 ? `Another answer to: ${question.question}` : `Answer to: ${question.question}`}
        placeholder={options.length > 0 ? 'Something else…' : 'Your answer…'}
        className={input}
        value={given.typed}
        onChange={(event) =>
          change({ chosen: several || event.target.value === '' ? given.chosen : [], typed: event.target.value })
        }
      />
    </fieldset>
  )
}
