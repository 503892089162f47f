import { lazy, memo, Suspense } from 'react'
import { loadMarkdown } from './preload'
import { Prose } from './Prose'

const Markdown = lazy(() => loadMarkdown().then((module) => ({ default: module.Markdown })))

// MarkdownContent shows what a model wrote. Until the parser is there it is plain
// text, which is what markdown is meant to be readable as.
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
