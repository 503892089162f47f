import { lazy, memo, Suspense } from 'react'
import { loadMarkdown } from './preload'
import { Prose } from './Prose'

const Markdown = lazy(() => loadMarkdown().then((module) => ({ default: module.Markdown })))

// MarkdownContent renders the text of a model. Until the parser is loaded it shows the markdown as plain text.
export const MarkdownContent = memo(function MarkdownContent({ text, live }: { text: string; live?: boolean }) {
  return (
    <Suspense
      fallback={
        <div className="whitespace-pre-wrap break-words">
          <Prose>{text}</Prose>
        </div>
      }
    >
      <Markdown text={text} live={live} />
    </Suspense>
  )
})
