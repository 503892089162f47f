import type { ReactNode } from 'react'
import { classes } from '../../ui/classes'
import { WarningIcon } from '../../ui/icons'
import { plainly } from '../../ui/plainly'
import { ActivitySection } from './ActivitySection'
import { ChangeReportBlock } from './ChangeReportBlock'
import { useChat } from './chatContext'
import { FinalizeTaskBlock } from './FinalizeTaskBlock'
import type { ChatMessage, ContentBlock } from '../model/message'
import { MarkdownContent } from './MarkdownContent'
import { MessageBody } from './MessageBody'
import { PlanBlock } from './PlanBlock'
import { Prose } from './Prose'
import { grouped, type Doing } from '../model/groups'
import { SubagentTreeView } from './SubagentTreeView'

// MessageBlocks renders the blocks of a message in their order.
export function MessageBlocks({ message }: { message: ChatMessage }) {
  const tree = message.subagentTree ?? []
  const groups = grouped(
    message.content ?? (message.text === '' ? [] : [{ type: 'text', text: message.text, open: false }]),
    tree,
  )
  const going = message.isGenerating === true
  return (
    <div className="flex min-w-0 flex-col gap-3">
      {groups.map((group, at) => {
        const live = going && at === groups.length - 1
        if ('helpers' in group) return <SubagentTreeView key={at} roots={group.helpers} entries={tree} />
        if ('doing' in group) return <ActivitySection key={at} blocks={group.doing} going={going} live={live} />
        return <Block key={at} block={group.block} message={message} live={live} />
      })}
    </div>
  )
}

function Block({
  block,
  message,
  live,
}: {
  block: Exclude<ContentBlock, Doing>
  message: ChatMessage
  live: boolean
}): ReactNode {
  const { plan, session } = useChat()
  switch (block.type) {
    case 'text':
      return <MessageBody text={block.text} live={live && block.open} />
    case 'cut':
      return (
        <p
          className={classes(
            'flex items-center gap-3 text-xs text-ink-soft',
            'before:h-px before:grow before:bg-line after:h-px after:grow after:bg-line',
          )}
        >
          The answer broke off here, and continues below
        </p>
      )
    case 'plan':
      return (
        <PlanBlock
          plan={block.plan}
          deciding={
            block.plan === plan && plan.status === 'planned' && message.session === session && !message.isGenerating
          }
        />
      )
    case 'change_report':
      return <ChangeReportBlock run={block.run} files={block.files} truncated={block.truncated} />
    case 'finalize_task':
      return <FinalizeTaskBlock task={block.task} />
    case 'model_fallback':
      return (
        <p className="flex items-start gap-2 rounded-md bg-waiting-soft px-3 py-2 text-sm">
          <WarningIcon className="mt-1 shrink-0 text-waiting" />
          <span className="min-w-0 break-words">
            Answered by <b className="font-medium">{block.fallback.actual}</b>, because{' '}
            {block.fallback.preferred} failed ({block.fallback.reason}).
          </span>
        </p>
      )
    case 'explanation':
      return (
        <div className="rounded-lg border border-line bg-raised px-4 py-3 text-sm">
          <p className="mb-1 text-xs text-ink-soft">Explanation by {message.from}</p>
          <MarkdownContent text={block.text} />
        </div>
      )
    case 'notice':
      return (
        <Notice
          text={block.text}
          failed={
            message.outcome !== undefined &&
            message.outcome !== 'completed' &&
            message.outcome !== 'cancelled' &&
            (block.retry === undefined || block.retry.state === 'gave_up')
          }
        />
      )
  }
}

function Notice({ text, failed }: { text: string; failed: boolean }) {
  return (
    <p
      className={
        failed
          ? 'flex items-start gap-2 rounded-md border border-failed bg-failed-soft px-3 py-2 text-sm'
          : 'flex items-start gap-2 rounded-md bg-sunken px-3 py-2 text-sm text-ink-soft'
      }
    >
      {failed && <WarningIcon className="mt-1 shrink-0 text-failed" />}
      <span className="min-w-0 break-words whitespace-pre-wrap">
        <Prose>{plainly(text)}</Prose>
      </span>
    </p>
  )
}
