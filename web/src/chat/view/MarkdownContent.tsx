import { memo } from 'react'
import { markdown } from './preload'
import { Prose } from './Prose'

// MarkdownContent renders the text of a model. Until the parser is loaded it shows the markdown as plain text.
export const MarkdownContent = memo(function MarkdownContent({ text, live }: { text: string; live?: boolean }) {
  return (
    <markdown.Late
      text={text}
      live={live}
      fallback={
        <div className="whitespace-pre-wrap break-words">
          <Prose>{text}</Prose>
        </div>
      }
    />
  )
})
