import { lazy, memo, Suspense } from 'react'
import { Prose } from './prose'

const load = () => import('./Markdown')
const Markdown = lazy(() => load().then((module) => ({ default: module.Markdown })))

// Most of what will be shown is markdown: it is fetched before it is needed.
export function preloadMarkdown(): void {
  void load()
}

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
