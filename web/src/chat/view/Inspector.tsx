import { useState, type ReactNode } from 'react'
import { Button } from '../../ui/Button'
import { lasting } from '../../ui/time'
import { StatusBadge } from '../../ui/StatusBadge'
import { useChat } from './chatContext'
import type { ChatState } from '../model/chatReducer'
import { ContextMeter } from './ContextMeter'
import { dollars, short } from '../../ui/amounts'
import { describe } from '../model/describe'
import { wholeRun } from '../model/ending'
import { statusOf, took } from '../model/tools'
import { Grants } from './Grants'
import { ToolSign } from './GroupedToolActivity'
import type { ChatMessage, ToolUse } from '../model/message'
import { PlanItems } from './PlanBlock'
import type { Run } from '../../wire/native.generated'
import { useRuns } from './queries'
import { RawLog } from './RawLog'
import { Servers } from './Servers'
import { Since } from './Since'

// Inspector shows the details of a run: its duration, turns, tool calls and cost, which the conversation folds away.
export function Inspector({ state }: { state: ChatState }) {
  const { session, cards } = useChat()
  const { data: runs = [] } = useRuns(session, state.loaded)
  const [raw, setRaw] = useState<Run | 'all' | null>(null)
  const message = wholeRun(state)
  const latest = runs[0]
  const status = message?.isGenerating
    ? cards.length > 0
      ? 'waiting'
      : 'running'
    : (message?.outcome ?? (message === undefined ? 'idle' : 'done'))
  const total = runs.reduce((sum, run) => sum + (run.usage?.input ?? 0) + (run.usage?.output ?? 0), 0)
  const cost = runs.reduce((sum, run) => sum + (run.usage?.cost_micros ?? 0), 0)
  return (
    <div className="flex flex-col gap-5 p-4 text-sm">
      <Part name="Run">
        <div className="flex items-center gap-2">
          <StatusBadge status={status}>
            {status === 'running'
              ? 'working'
              : status === 'waiting'
                ? 'waiting for you'
                : status === 'cancelled'
                  ? 'stopped'
                  : undefined}
          </StatusBadge>
          {message?.isGenerating && message.timestampMs !== undefined ? (
            <Since at={message.timestampMs} />
          ) : (
            message?.durationMs !== undefined && (
              <span className="text-xs text-ink-soft">{lasting(message.durationMs - (message.waitedMs ?? 0))}</span>
            )
          )}
          <span className="ml-auto truncate text-xs text-ink-soft">{message?.from}</span>
        </div>
        {(message?.waitedMs ?? 0) >= 1000 && (
          <p className="text-xs text-ink-soft">and {lasting(message!.waitedMs!)} waiting for you</p>
        )}
        {message === undefined ? <p className="text-ink-soft">There is no run yet.</p> : <Turns message={message} />}
      </Part>
      <Part name="Tokens and cost">
        {state.context !== undefined && <ContextMeter usage={state.context} />}
        <dl className="grid grid-cols-[auto_1fr] gap-x-3 gap-y-0.5 text-xs">
          <Row name="This run" value={latest === undefined ? '–' : usageOf(latest)} />
          {(latest?.usage?.cached ?? 0) > 0 && <Row name="Cached" value={`${short(latest!.usage!.cached!)} in`} />}
          <Row name="Conversation" value={total === 0 ? '–' : `${short(total)} tokens`} />
          <Row
            name="Cost"
            value={cost > 0 ? dollars(cost) : total > 0 ? 'price unknown' : '–'}
          />
          <Row name="Runs" value={runs.length >= 200 ? '200 or more' : String(runs.length)} />
        </dl>
      </Part>
      {state.plan !== undefined && (
        <Part name="Plan">
          <div className="flex items-center gap-2">
            <StatusBadge status={state.plan.status}>
              {state.plan.status === 'planned' ? 'waiting for you' : undefined}
            </StatusBadge>
          </div>
          <PlanItems plan={state.plan} className="text-xs" />
        </Part>
      )}
      {state.loaded && (
        <Part name="Always allowed">
          <Grants />
        </Part>
      )}
      {state.loaded && <Servers />}
      <Part name="Events">
        <div className="flex flex-wrap gap-2">
          <Button small disabled={latest === undefined} onClick={() => setRaw(latest ?? null)}>
            Events of this run
          </Button>
          <Button small onClick={() => setRaw('all')}>
            All events
          </Button>
        </div>
      </Part>
      {raw !== null && (
        <RawLog session={session} run={raw === 'all' ? undefined : raw.run} onClose={() => setRaw(null)} />
      )}
    </div>
  )
}

function usageOf(run: Run): string {
  const { input = 0, output = 0 } = run.usage ?? {}
  if (input + output === 0) return run.outcome === undefined ? 'counted when it ends' : '–'
  return `${short(input)} in, ${short(output)} out`
}

function Part({ name, children }: { name: string; children: ReactNode }) {
  return (
    <section className="flex flex-col gap-2">
      <h2 className="text-xs font-semibold text-ink-soft">{name}</h2>
      {children}
    </section>
  )
}

function Row({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt className="text-ink-soft">{name}</dt>
      <dd className="text-right tabular-nums">{value}</dd>
    </>
  )
}

// Turns lists the turns of the model, each with its tool calls.
function Turns({ message }: { message: ChatMessage }) {
  const { asked } = useChat()
  const starts = message.turns ?? []
  const tools = (message.content ?? []).filter((block): block is ToolUse => block.type === 'tool_use')
  const end = message.isGenerating ? undefined : (message.timestampMs ?? 0) + (message.durationMs ?? 0)
  return (
    <ol className="flex flex-col gap-1.5">
      {starts.map((start, at) => {
        const until = starts[at + 1] ?? end
        return (
          <li key={at}>
            <div className="flex items-baseline gap-2 text-xs">
              <span className="font-medium">turn {at + 1}</span>
              <span className="ml-auto text-ink-soft tabular-nums">
                {until === undefined ? <Since at={start} from={0} /> : lasting(until - start)}
              </span>
            </div>
            <ul>
              {tools
                .filter((tool) => tool.turn === at + 1)
                .map((tool) => (
                  <li key={tool.id} className="flex items-center gap-1.5 pl-2 text-xs">
                    <ToolSign status={statusOf(tool, asked, message.isGenerating === true)} />
                    <span className="min-w-0 truncate font-mono" title={describe(tool).object}>
                      {tool.tool}
                    </span>
                    <span className="ml-auto shrink-0 text-ink-soft tabular-nums">
                      {tool.endedMs === undefined ? (
                        asked.has(tool.tool) ? (
                          'waiting'
                        ) : (
                          <Since at={tool.startedMs} from={0} />
                        )
                      ) : (
                        took(tool)
                      )}
                    </span>
                  </li>
                ))}
            </ul>
          </li>
        )
      })}
    </ol>
  )
}
