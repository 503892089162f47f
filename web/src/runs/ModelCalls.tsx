import { useState, type ReactNode } from 'react'
import { short } from '../ui/amounts'
import { CopyButton } from '../ui/CopyButton'
import { classes } from '../ui/classes'
import { ChevronDownIcon, ChevronRightIcon } from '../ui/icons'
import { Exact, Mono } from '../ui/Mono'
import { Facts } from '../ui/Page'
import { lasting } from '../ui/time'
import { saidText, stopWords, type ModelCall } from './calls'
import { Prompt } from './Prompt'
import { money } from './waterfall'

const columns = 'md:grid-cols-[9rem_1fr_7rem_6rem_9rem_5rem]'

// ModelCalls lists the model calls of a run. Each unfolds to its prompt, its answer and its parameters.
export function ModelCalls({ run, calls }: { run: string; calls: ModelCall[] }) {
  if (calls.length === 0) return <p className="text-sm text-ink-soft">The run has not called a model.</p>
  return (
    <div className="overflow-hidden rounded-lg border border-line">
      <div
        aria-hidden="true"
        className={classes(
          'hidden gap-x-4 border-b border-line bg-raised px-3 py-1.5 text-xs text-ink-soft md:grid',
          columns,
        )}
      >
        <span>Call</span>
        <span>Model</span>
        <span className="text-right">First token</span>
        <span className="text-right">Time</span>
        <span className="text-right">Tokens</span>
        <span className="text-right">Cost</span>
      </div>
      <ol>
        {calls.map((call) => (
          <Call key={call.turn} run={run} call={call} />
        ))}
      </ol>
    </div>
  )
}

function Call({ run, call }: { run: string; call: ModelCall }) {
  const [open, setOpen] = useState(false)
  const { input = 0, output = 0 } = call.usage ?? {}
  const figures: [string, string][] = [
    ['first token', call.first === undefined ? '–' : lasting(call.first - call.start)],
    ['time', call.end === undefined ? 'answering' : lasting(call.end - call.start)],
    ['tokens', input + output === 0 ? '–' : `${short(input)} in, ${short(output)} out`],
    ['cost', money(call.usage) ?? '–'],
  ]
  return (
    <li className="border-b border-line last:border-b-0">
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className={classes(
          'grid w-full grid-cols-2 items-center gap-x-4 gap-y-1 bg-raised px-3 py-2 text-left text-sm',
          'hover:bg-sunken focus-visible:-outline-offset-2',
          columns,
        )}
      >
        <span className="flex items-center gap-2">
          {open ? <ChevronDownIcon className="text-ink-soft" /> : <ChevronRightIcon className="text-ink-soft" />}
          Turn {call.number}
        </span>
        <span className="min-w-0 truncate font-mono text-xs">
          <Exact>{call.answeredBy ?? call.model ?? 'default model'}</Exact>
        </span>
        {figures.map(([name, what]) => (
          <span key={name} className="text-right text-xs tabular-nums text-ink-soft">
            <span className="md:sr-only">{name} </span>
            {what}
          </span>
        ))}
      </button>
      {open && <Inside run={run} call={call} />}
    </li>
  )
}

const tabs = ['Prompt', 'Answer', 'Parameters'] as const

function Inside({ run, call }: { run: string; call: ModelCall }) {
  const [tab, setTab] = useState<(typeof tabs)[number]>('Prompt')
  return (
    <div className="flex flex-col gap-3 border-t border-line bg-paper px-4 py-3 text-sm">
      <div role="group" aria-label={`What to show of turn ${call.number}`} className="flex flex-wrap gap-1">
        {tabs.map((name) => (
          <button
            key={name}
            type="button"
            aria-pressed={tab === name}
            onClick={() => setTab(name)}
            className={classes(
              'rounded-md px-3 py-1 text-xs font-medium',
              tab === name ? 'bg-accent-soft text-accent' : 'text-ink-soft hover:bg-sunken',
            )}
          >
            {name}
          </button>
        ))}
      </div>
      {tab === 'Prompt' && <Prompt run={run} turn={call.number} />}
      {tab === 'Answer' && <Answer call={call} />}
      {tab === 'Parameters' && <Parameters call={call} />}
    </div>
  )
}

function Answer({ call }: { call: ModelCall }) {
  const thinking = saidText(call, 'thinking')
  const text = saidText(call, 'text')
  return (
    <>
      <p className="text-xs text-ink-soft">
        {stopWords(call.stop)} {call.problem !== undefined && <Exact>{call.problem}</Exact>}
      </p>
      {thinking !== '' && <Text name="Thinking">{thinking}</Text>}
      {text !== '' && <Text name="Text">{text}</Text>}
      {call.asked.map((asked) => (
        <Text key={asked.seq} name={`Tool call ${asked.name}`}>
          {pretty(asked.arguments)}
        </Text>
      ))}
      {thinking + text === '' && call.asked.length === 0 && (
        <p className="text-ink-soft">The model has said nothing in this call.</p>
      )}
    </>
  )
}

function Parameters({ call }: { call: ModelCall }) {
  const { input = 0, output = 0, cached = 0, written = 0 } = call.usage ?? {}
  const facts: [string, ReactNode][] = [
    ['Model', <Mono key="model">{call.model ?? 'default model'}</Mono>],
    ['Answered by', call.answeredBy === undefined ? undefined : <Mono key="by">{call.answeredBy}</Mono>],
    ['Retries', call.retries === 0 ? undefined : String(call.retries)],
    ['Time to first token', call.first === undefined ? 'no text was streamed' : lasting(call.first - call.start)],
    ['Time', call.end === undefined ? 'answering' : lasting(call.end - call.start)],
    ['Input tokens', `${input.toLocaleString()}${cached > 0 ? `, ${cached.toLocaleString()} of them cached` : ''}`],
    ['Tokens written to the cache', written === 0 ? undefined : written.toLocaleString()],
    ['Output tokens', output.toLocaleString()],
    [
      'Context window',
      call.context === undefined
        ? undefined
        : `${call.context.tokens.toLocaleString()} of ${call.context.limit.toLocaleString()} tokens` +
          (call.context.estimated ? ' (estimated)' : ''),
    ],
    ['Cost', money(call.usage) ?? 'price unknown'],
    ['End', stopWords(call.stop)],
  ]
  return <Facts facts={facts.filter(([, what]) => what !== undefined)} />
}

export function Text({ name, aside, children }: { name: string; aside?: ReactNode; children: string }) {
  return (
    <div>
      <p className="mb-1 flex items-center gap-2 text-xs text-ink-soft">
        {name} {aside}
        <span className="ml-auto">
          <CopyButton text={children} />
        </span>
      </p>
      <Mono block className="max-h-96 text-xs">
        {children}
      </Mono>
    </div>
  )
}

// pretty indents JSON; text that is not JSON stays unchanged.
export function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2)
  } catch {
    return json
  }
}
