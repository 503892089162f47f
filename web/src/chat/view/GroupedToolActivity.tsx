import { useEffect, useRef } from 'react'
import { classes } from '../../ui/classes'
import { Mono } from '../../ui/Mono'
import { Diff } from '../../ui/Diff'
import { describe, requestOf } from '../model/describe'
import { group, statusOf, took, worst } from '../model/tools'
import { FileLink } from '../../files/FileLink'
import { useChat } from './chatContext'
import { Fold } from './Fold'
import type { ToolUse } from '../model/message'
import { Prose } from './Prose'
import { Since } from './Since'

const signs: Record<string, { sign: string; look: string }> = {
  running: { sign: '●', look: 'animate-pulse text-accent' },
  waiting: { sign: '◐', look: 'text-waiting' },
  done: { sign: '✓', look: 'text-done' },
  failed: { sign: '✗', look: 'text-failed' },
  denied: { sign: '⊘', look: 'text-ink-soft' },
  blocked: { sign: '⊘', look: 'text-failed' },
  cancelled: { sign: '○', look: 'text-ink-soft' },
  unknown: { sign: '?', look: 'text-waiting' },
}

export function ToolSign({ status }: { status: string }) {
  const { sign, look } = signs[status] ?? { sign: '○', look: 'text-ink-soft' }
  return (
    <span className={classes('inline-block w-3 shrink-0 text-center font-mono text-xs', look)}>
      <span aria-hidden="true">{sign}</span>
      <span className="sr-only">{status}</span>
    </span>
  )
}

interface GroupedToolActivityProps {
  tools: ToolUse[]
  asked: ReadonlySet<string> // tools of open approvals
  live: boolean // the run is active
}

// Three or more consecutive calls of one tool are one line.
export function GroupedToolActivity({ tools, asked, live }: GroupedToolActivityProps) {
  return (
    <ul className="flex flex-col gap-0.5 border-l border-line pl-3">
      {group(tools).map((some) => (
        <li key={some[0]!.id}>
          {some.length < 3 ? (
            some.map((tool) => <ToolLine key={tool.id} tool={tool} status={statusOf(tool, asked, live)} going={live} />)
          ) : (
            <Fold
              open={live && some.some((tool) => tool.endedMs === undefined)}
              head={
                <>
                  <ToolSign status={worst(some.map((tool) => statusOf(tool, asked, live)))} />
                  <span className="truncate">
                    {describe(some[0]!).verb} × {some.length}
                  </span>
                </>
              }
            >
              <div className="pl-4">
                {some.map((tool) => (
                  <ToolLine key={tool.id} tool={tool} status={statusOf(tool, asked, live)} going={live} />
                ))}
              </div>
            </Fold>
          )}
        </li>
      ))}
    </ul>
  )
}

export function ToolLine({ tool, status, going }: { tool: ToolUse; status: string; going: boolean }) {
  const { verb, object } = describe(tool)
  const running = status === 'running'
  return (
    <div>
      <Fold
        head={
          <>
            <ToolSign status={status} />
            <span className="shrink-0 text-ink">{verb}</span>
            <span className="min-w-0 truncate font-mono text-xs">
              <Prose>{object}</Prose>
            </span>
            {!['done', 'running'].includes(status) && (
              <span aria-hidden="true" className="shrink-0 text-xs">
                {status}
              </span>
            )}
            <span className="ml-auto shrink-0 pl-2 text-xs tabular-nums">
              {tool.endedMs === undefined ? running && <Since at={tool.startedMs} from={1} /> : took(tool)}
            </span>
          </>
        }
      >
        <Details tool={tool} status={status} />
      </Fold>
      {going && tool.output !== '' && <LiveOutput text={tool.output} />}
    </div>
  )
}

function kib(characters: number): string {
  return `${Math.ceil(characters / 1024)} KiB`
}

function Details({ tool, status }: { tool: ToolUse; status: string }) {
  return (
    <div className="mb-2 flex flex-col gap-2 pl-5 text-sm">
      <div>
        <p className="text-xs text-ink-soft">
          <span className="font-mono">{tool.tool}</span> · {status}
        </p>
        <Asked tool={tool} />
        <FileLink tool={tool.tool} args={tool.args} session={useChat().session} />
      </div>
      {tool.output !== '' && status !== 'running' && (
        <div>
          <p className="text-xs text-ink-soft">
            Output
            {tool.cut > 0 && ` (the last ${kib(tool.output.length)}; the log has ${kib(tool.cut)} more)`}
          </p>
          <Mono block className="max-h-80 text-xs">
            {tool.output.replace(/\n$/, '')}
          </Mono>
        </div>
      )}
      {tool.summary !== '' && (
        <div>
          <p className="text-xs text-ink-soft">Result</p>
          <Mono block className="max-h-40 text-xs">
            {tool.summary}
          </Mono>
        </div>
      )}
    </div>
  )
}

// Asked shows a command as a command, and a change to files as a diff.
function Asked({ tool }: { tool: ToolUse }) {
  const request = requestOf(tool)
  if (request.as === 'patch') return <Diff text={request.text} label="Requested changes" />
  return (
    <Mono block className="max-h-64 text-xs">
      {request.text}
    </Mono>
  )
}

const shownLines = 12

// LiveOutput is the end of a tool's output while the run is active. It stays after the tool has ended, so that the page
// does not jump.
function LiveOutput({ text }: { text: string }) {
  const box = useRef<HTMLDivElement>(null)
  const lines = text.replace(/\n$/, '').split('\n')
  useEffect(() => {
    const pre = box.current?.querySelector('pre')
    if (pre) pre.scrollTop = pre.scrollHeight
  })
  return (
    <div ref={box} className="pl-5" aria-label="Live output">
      <Mono block className="max-h-48 text-xs">
        {lines.slice(-shownLines).join('\n')}
      </Mono>
      {lines.length > shownLines && <p className="text-xs text-ink-soft">{lines.length - shownLines} earlier lines</p>}
    </div>
  )
}
