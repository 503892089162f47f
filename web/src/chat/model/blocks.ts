// Pure changes of one message: each function returns a new message.

import type { ChatMessage, ContentBlock, ToolUse } from './message'

const maxOutput = 64 * 1024 // characters of a tool's output that are kept

const noBlocks: ContentBlock[] = []

export function blocksOf(message: ChatMessage): ContentBlock[] {
  return message.content ?? noBlocks
}

export function withBlock(message: ChatMessage, block: ContentBlock): ChatMessage {
  return { ...message, content: [...blocksOf(message), block] }
}

// withCut marks that the text at the end broke off: its run continues with another turn, and has called no tool.
export function withCut(message: ChatMessage): ChatMessage {
  const last = blocksOf(message).at(-1)
  return last?.type === 'text' && last.text.trim() !== '' ? withBlock(message, { type: 'cut' }) : message
}

// withLast changes the last block for which is holds. Without one the message
// stays unchanged.
export function withLast(
  message: ChatMessage,
  is: (block: ContentBlock) => boolean,
  change: (block: ContentBlock) => ContentBlock,
): ChatMessage {
  const content = blocksOf(message)
  const at = content.findLastIndex(is)
  return at < 0 ? message : { ...message, content: content.with(at, change(content[at]!)) }
}

// A token may be the rest of an output or all of it: the server does not resend the chunks of finished outputs.
export function withToken(
  message: ChatMessage,
  text: string,
  thinking: boolean,
  done: boolean,
  at: number,
): ChatMessage {
  const type = thinking ? 'thinking' : 'text'
  const last = blocksOf(message).at(-1)
  let next: ChatMessage = { ...message, isThinking: thinking && !done, activitySummary: undefined }
  if (last === undefined || last.type !== type || !last.open) {
    if (text === '' && done) return next
    next = withBlock(
      next,
      thinking
        ? { type, text: '', open: true, startedMs: message.statusSinceMs ?? at }
        : { type: 'text', text: '', open: true },
    )
  }
  next = withLast(
    next,
    (block) => block.type === type && block.open,
    (block) => {
      if (block.type === 'thinking')
        return { ...block, text: block.text + text, open: !done, endedMs: done ? at : undefined }
      if (block.type === 'text') return { ...block, text: block.text + text, open: !done }
      return block
    },
  )
  if (thinking) return next
  const liveText = (next.liveText ?? '') + text
  return { ...next, liveText, text: joined(next) + liveText }
}

function joined(message: ChatMessage): string {
  return (message.segments ?? []).map((segment) => segment.text).join('')
}

// A segment is the whole text that was streamed since the previous segment.
export function withSegment(message: ChatMessage, text: string): ChatMessage {
  const segments = [...(message.segments ?? []), { text }]
  const streamed = (message.liveText ?? '') !== ''
  const next = { ...message, segments, liveText: '', text: segments.map((segment) => segment.text).join('') }
  if (!streamed) return withBlock(next, { type: 'text', text, open: false })
  return withLast(
    next,
    (block) => block.type === 'text',
    () => ({ type: 'text', text, open: false }),
  )
}

// answerOf is the text of an answer for copying. Its parts are separate paragraphs, as on the page.
export function answerOf(message: ChatMessage): string {
  let text = ''
  let cut = false // the next text continues the text that broke off
  for (const block of blocksOf(message)) {
    if (block.type === 'cut') cut = true
    if (block.type !== 'text' || block.text.trim() === '') continue
    text = cut ? text + block.text : [text.trim(), block.text].filter((part) => part !== '').join('\n\n')
    cut = false
  }
  return text.trim() === '' ? message.text : text.trim()
}

// hasSaid reports whether the message ends with this text already: an answer is
// sent as segments, and then once more as a whole.
export function hasSaid(message: ChatMessage, text: string): boolean {
  const said = blocksOf(message).map((block) => (block.type === 'text' ? block.text : ''))
  return said.join('').endsWith(text)
}

export function withTool(message: ChatMessage, tool: ToolUse): ChatMessage {
  return { ...withBlock(message, tool), toolCount: (message.toolCount ?? 0) + 1 }
}

export function withToolUpdate(message: ChatMessage, id: string, change: (tool: ToolUse) => ToolUse): ChatMessage {
  return withLast(
    message,
    (block) => block.type === 'tool_use' && block.id === id,
    (block) => (block.type === 'tool_use' ? change(block) : block),
  )
}

// withOutput appends a line to the output of a tool, and keeps only its end.
export function withOutput(message: ChatMessage, id: string, tool: string, line: string): ChatMessage {
  const isIt = (block: ContentBlock) =>
    block.type === 'tool_use' && (id === '' ? block.tool === tool && block.endedMs === undefined : block.id === id)
  return withLast(message, isIt, (block) => {
    if (block.type !== 'tool_use') return block
    const output = block.output + line + '\n'
    const over = Math.max(0, output.length - maxOutput)
    return { ...block, output: output.slice(over), cut: block.cut + over }
  })
}

// withEnd closes the open blocks.
export function withEnd(message: ChatMessage, at: number, outcome?: string): ChatMessage {
  const open = blocksOf(message).some((block) => (block.type === 'text' || block.type === 'thinking') && block.open)
  return {
    ...message,
    content: open
      ? blocksOf(message).map((block) => {
          if (block.type === 'thinking' && block.open) return { ...block, open: false, endedMs: at }
          return block.type === 'text' && block.open ? { ...block, open: false } : block
        })
      : message.content,
    isGenerating: false,
    isThinking: false,
    activitySummary: summaryOf(message),
    statusSinceMs: undefined,
    subagentTree: message.subagentTree?.map((entry) =>
      entry.status === 'running' && outcome !== undefined
        ? { ...entry, status: 'cancelled', endedMs: at, message: withEnd(entry.message, at, 'cancelled') }
        : entry,
    ),
    ...(outcome === undefined ? {} : { outcome }),
  }
}

function summaryOf(message: ChatMessage): string | undefined {
  const count = message.toolCount ?? 0
  return count === 0 ? undefined : count === 1 ? 'Ran 1 tool' : `Ran ${count} tools`
}

// isEmpty reports whether the message has no content yet.
export function isEmpty(message: ChatMessage): boolean {
  return (
    blocksOf(message).length === 0 && (message.turns ?? []).length === 0 && (message.subagentTree ?? []).length === 0
  )
}
