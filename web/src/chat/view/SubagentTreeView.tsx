import { lasting } from '../../ui/time'
import { StatusBadge } from '../../ui/StatusBadge'
import { Fold } from './Fold'
import { getMessagePhase, isTransient, type SubagentTreeEntry } from '../model/message'
import { MessageBlocks } from './MessageBlocks'
import { Prose } from './Prose'
import { Since } from './Since'

interface SubagentTreeViewProps {
  roots: SubagentTreeEntry[]
  entries: SubagentTreeEntry[] // all sub-agents: those below are selected here
}

// SubagentTreeView is the tree of sub-agents of a message.
export function SubagentTreeView({ roots, entries }: SubagentTreeViewProps) {
  if (roots.length === 0) return null
  return (
    <ul aria-label="Sub-agents" className="flex flex-col gap-1.5">
      {roots.map((entry) => (
        <li key={entry.id} className="rounded-lg border border-line bg-raised px-3 py-1.5">
          <Fold
            head={
              <>
                <span aria-hidden="true" className="font-mono text-xs">
                  ↳
                </span>
                <span className="shrink-0 font-medium text-ink">{entry.agent}</span>
                <span className="min-w-0 truncate">
                  <Prose>{entry.task}</Prose>
                </span>
                <span className="ml-auto flex shrink-0 items-center gap-2 pl-2 text-xs tabular-nums">
                  {entry.endedMs === undefined ? (
                    <Since at={entry.startedMs} />
                  ) : (
                    lasting(entry.endedMs - entry.startedMs)
                  )}
                  <StatusBadge status={entry.status} />
                </span>
              </>
            }
          >
            <div className="flex flex-col gap-2 py-1 pl-5">
              <p className="text-sm whitespace-pre-wrap text-ink-soft">
                <Prose>{entry.task}</Prose>
              </p>
              <div className="text-sm">
                <MessageBlocks message={entry.message} />
              </div>
            </div>
          </Fold>
          {entry.status === 'running' && <Doing entry={entry} />}
          <div className="pl-5">
            <SubagentTreeView roots={entries.filter((below) => below.parent === entry.id)} entries={entries} />
          </div>
        </li>
      ))}
    </ul>
  )
}

function Doing({ entry }: { entry: SubagentTreeEntry }) {
  const { message } = entry
  const words = {
    thinking: 'Thinking',
    working: message.activitySummary ?? 'Working',
    streaming: 'Writing',
    done: 'Finishing',
  }[getMessagePhase(message)]
  const waiting = message.activitySummary === undefined || isTransient(message.activitySummary)
  return (
    <p className="truncate pb-1 pl-5 text-xs text-ink-soft">
      {words === 'Writing' && waiting && message.text === '' ? 'Starting' : words}…
    </p>
  )
}
