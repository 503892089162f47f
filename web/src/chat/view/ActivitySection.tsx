import { lasting } from '../../ui/time'
import { useChat } from './chatContext'
import { summarize } from '../model/describe'
import { Fold } from './Fold'
import { statusOf } from '../model/tools'
import { GroupedToolActivity, ToolLine, ToolSign } from './GroupedToolActivity'
import type { ContentBlock, ToolUse } from '../model/message'
import { Prose } from './Prose'

type Thought = Extract<ContentBlock, { type: 'thinking' }>

interface ActivitySectionProps {
  blocks: (Thought | ToolUse)[]
  going: boolean // the run is active
  live: boolean // and no other block came after these
}

const mostSigns = 8

// ActivitySection summarizes the agent's actions between two texts in one line. It is unfolded while they run.
export function ActivitySection({ blocks, going, live }: ActivitySectionProps) {
  const { asked } = useChat()
  const thoughts = blocks.filter((block) => block.type === 'thinking')
  const tools = blocks.filter((block) => block.type === 'tool_use')
  const statuses = tools.map((tool) => statusOf(tool, asked, going))
  return (
    <div className="flex flex-col gap-0.5">
      {thoughts.map((thought, at) => (
        <ThoughtLine key={at} thought={thought} live={live} />
      ))}
      {tools.length === 1 && <ToolLine tool={tools[0]!} status={statuses[0]!} going={going} />}
      {tools.length > 1 && (
        <Fold
          open={live}
          head={
            <>
              <span className="shrink-0">
                {statuses.includes('running') ? 'Running' : statuses.includes('waiting') ? 'Wants to run' : 'Ran'}{' '}
                {tools.length === 1 ? '1 tool' : `${tools.length} tools`}
              </span>
              <span className="min-w-0 truncate font-mono text-xs">
                <Prose>{summarize(tools)}</Prose>
              </span>
              <span className="ml-auto flex shrink-0 pl-2">
                {statuses.slice(-mostSigns).map((status, at) => (
                  <ToolSign key={at} status={status} />
                ))}
              </span>
            </>
          }
        >
          <div className="mt-0.5 mb-1">
            <GroupedToolActivity tools={tools} asked={asked} live={going} />
          </div>
        </Fold>
      )}
    </div>
  )
}

function ThoughtLine({ thought, live }: { thought: Thought; live: boolean }) {
  const took = thought.endedMs === undefined ? undefined : thought.endedMs - thought.startedMs
  return (
    <Fold
      open={live && thought.open}
      head={
        <span>
          {took === undefined ? 'Thinking' : took < 1000 ? 'Thought briefly' : `Thought for ${lasting(took)}`}
        </span>
      }
    >
      <div className="mt-0.5 mb-1 border-l border-line pl-3 text-sm whitespace-pre-wrap text-ink-soft">
        <Prose>{thought.text}</Prose>
      </div>
    </Fold>
  )
}
